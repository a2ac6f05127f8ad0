package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
)

// dropWithin is how long dropping a scratch schema may take.
const dropWithin = 30 * time.Second

// scratch gives ledgers of the kind that --ledger names, one for each action type, and none of its
// rows: files in dir, or schemas of their own in the same database. drop removes them.
func (c verifyCommand) scratch(ctx context.Context, dir string) (open func(context.Context, string) (ledger.Store, error), drop func() error, err error) {
	urls, drops := map[string]string{}, []func() error(nil)
	drop = func() error {
		var errs []error
		for _, one := range drops {
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	if _, err := c.ledgerPath(dir); err != nil && !c.shared() {
		return nil, nil, err
	}
	for _, action := range actions {
		urls[action] = "sqlite:" + filepath.Join(dir, action+".db")
		if !c.shared() {
			continue
		}
		scratch, one, err := scratchSchema(ctx, c.Ledger)
		if err != nil {
			return nil, nil, errors.Join(err, drop())
		}
		urls[action], drops = scratch, append(drops, one)
	}
	quiet := slog.New(slog.DiscardHandler)
	return func(ctx context.Context, action string) (ledger.Store, error) {
		return dataFlags{Ledger: urls[action]}.openStore(ctx, dir, quiet)
	}, drop, nil
}

// scratchSchema makes a schema in the ledger's database, and says under which URL it is used. Its
// name can't be an existing one's.
func scratchSchema(ctx context.Context, ledgerURL string) (scratchURL string, drop func() error, err error) {
	u, err := url.Parse(ledgerURL)
	if err != nil {
		return "", nil, errors.New("--ledger isn't a URL like postgres://user@host:5432/database")
	}
	query := u.Query()
	for name := range query {
		if strings.HasPrefix(name, "pool_") { // these are no parameters of a single connection
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	db, err := sql.Open("pgx", u.String()) // the driver that ledger/postgres brings
	if err != nil {
		return "", nil, errors.New("--ledger isn't a URL like postgres://user@host:5432/database")
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // it never fails
	schema := "onceward_verify_" + hex.EncodeToString(random)
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the scratch schema can't be made: %w; let the user make schemas (GRANT CREATE ON DATABASE), or rehearse without --ledger", err), db.Close())
	}
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String(), func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropWithin)
		defer cancel()
		_, err := db.ExecContext(ctx, "DROP SCHEMA "+schema+" CASCADE")
		if err != nil {
			err = fmt.Errorf("the scratch schema is still there: %w; remove it with DROP SCHEMA %s CASCADE", err, schema)
		}
		return errors.Join(err, db.Close())
	}, nil
}
