package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/postgres"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/policy"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
	"github.com/onceward/onceward/telemetry"
)

// dataFlags say where things are kept.
type dataFlags struct {
	DataDir string `env:"ONCEWARD_DATA_DIR" placeholder:"DIR" help:"Where the ledger, the secrets and the sandbox's journal are. Default: onceward/ in the user's state directory."`
	Ledger  string `env:"ONCEWARD_LEDGER" placeholder:"URL" help:"The ledger: sqlite:PATH, or postgres://... where several servers share it. Default: sqlite:<data-dir>/ledger.db."`
}

// logFlags say how to log. Logs go to stderr only.
type logFlags struct {
	LogLevel  string `env:"ONCEWARD_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"How much to log: ${enum}."`
	LogFormat string `env:"ONCEWARD_LOG_FORMAT" enum:"text,json" default:"text" help:"How to log: ${enum}."`
}

func (f logFlags) logger(s streams) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(s.err, o)
	if f.LogFormat == "json" {
		h = slog.NewJSONHandler(s.err, o)
	}
	return slog.New(telemetry.LogHandler(h))
}

// dir is the data directory.
func (f dataFlags) dir() (string, error) {
	if f.DataDir != "" {
		return f.DataDir, nil
	}
	if state := os.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "onceward"), nil
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		config, err := os.UserConfigDir() // where these systems keep an application's state
		if err != nil {
			return "", fmt.Errorf("no place for the ledger: %w; name one with --data-dir", err)
		}
		return filepath.Join(config, "onceward"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for the ledger: %w; name one with --data-dir", err)
	}
	return filepath.Join(home, ".local", "state", "onceward"), nil
}

// shared reports whether the ledger is in a database that several machines share.
func (f dataFlags) shared() bool {
	return strings.HasPrefix(f.Ledger, "postgres://") || strings.HasPrefix(f.Ledger, "postgresql://")
}

// ledgerPath is the embedded ledger's file.
func (f dataFlags) ledgerPath(dir string) (string, error) {
	if f.Ledger == "" {
		return filepath.Join(dir, "ledger.db"), nil
	}
	path, ok := strings.CutPrefix(f.Ledger, "sqlite:")
	if !ok || path == "" { // the text may hold a password: it isn't repeated
		return "", errors.New("--ledger is sqlite: and a path, such as sqlite:/var/lib/onceward/ledger.db, or a URL like postgres://user@host:5432/database")
	}
	return path, nil
}

func noLedger(path string) error {
	return fmt.Errorf("%w: there is no ledger at %s; name the data directory of your server with --data-dir", errRefused, path)
}

// openStore opens the ledger's database, and makes it where there is none.
func (f dataFlags) openStore(ctx context.Context, dir string, log *slog.Logger) (ledger.Store, error) {
	if f.shared() {
		return postgres.Open(ctx, postgres.Options{URL: f.Ledger, Log: log})
	}
	path, err := f.ledgerPath(dir)
	if err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, path)
}

// An office is all that the commands work with: the ledger and the outside world.
type office struct {
	ledger    *ledger.Ledger
	store     ledger.Store
	secret    ledger.Secret
	providers map[string]providers.Provider // by action type
	policies  map[string]*policy.Policy     // by action type
	sandbox   *sandbox.Sandbox              // nil where real providers serve all tools
	config    *configuration
	dir       string // the data directory
	log       *slog.Logger
}

// officeFlags are what every command on operations needs.
type officeFlags struct {
	dataFlags
	configFlags
	sandboxFlags
}

// openOffice opens the ledger, ties it to its secrets, and reaches the providers. With create,
// what is missing is made; else a missing ledger is an error.
func openOffice(ctx context.Context, flags officeFlags, log *slog.Logger, create bool) (o *office, err error) {
	config, err := flags.read()
	if err != nil {
		return nil, err
	}
	dir, err := flags.dir()
	if err != nil {
		return nil, err
	}
	if flags.shared() && (os.Getenv("ONCEWARD_SECRET") == "" || os.Getenv("ONCEWARD_SEAL_KEY") == "") {
		return nil, errors.New("a ledger in PostgreSQL is shared, and so are its secrets: give every server the same ONCEWARD_SECRET and ONCEWARD_SEAL_KEY " +
			"(each hex: and 64 hexadecimal digits, such as openssl rand -hex 32 makes)")
	}
	if !create && !flags.shared() {
		if path, err := flags.ledgerPath(dir); err != nil {
			return nil, err
		} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, noLedger(path)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("can't make the data directory: %w", err)
	}
	store, err := flags.openStore(ctx, dir, log)
	if err != nil {
		return nil, err
	}
	o = &office{store: store, config: config, dir: dir, log: log}
	opened := o
	defer func() {
		if err != nil {
			o, err = nil, errors.Join(err, opened.close())
		}
	}()
	sealer, err := o.unlock(ctx, dir)
	if err != nil {
		return nil, err
	}
	o.ledger = &ledger.Ledger{
		Store: store, Sealer: sealer, Audit: ledger.NewAuditor(o.secret), Log: log,
		Actors: map[string]ledger.Actor{}, Rules: map[string]ledger.Rules{}, Policy: ledger.Policy{ReviewOverdue: time.Duration(config.ReviewOverdue)},
	}
	o.providers, o.policies = map[string]providers.Provider{}, map[string]*policy.Policy{}
	return o, o.hire(ctx, flags.sandboxFlags, dir)
}

// hire gives every tool its provider: the configured one, or the sandbox.
func (o *office) hire(ctx context.Context, box sandboxFlags, dir string) error {
	made := map[string]realProvider{}
	for _, action := range actions {
		name, real, err := o.config.provider(action, made)
		if err != nil {
			return err
		}
		if real != nil {
			err = o.employ(action, name, o.scope(real), real)
		} else {
			if o.sandbox == nil {
				if o.sandbox, err = box.open(ctx, dir); err != nil {
					return err
				}
			}
			err = o.employ(action, name, o.sandbox.Scope(), o.sandbox)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// employ has a provider serve an action type, under what the configuration lays down for it.
func (o *office) employ(action, name, scope string, p providers.Provider) error {
	traits, _ := p.Traits(action)
	actor, _ := providers.Actor(name, scope, action, p)
	laid, err := o.config.policy(action, traits)
	if err != nil {
		return err
	}
	actor.Promise = laid.Promise(actor.Promise)
	o.ledger.Actors[action], o.ledger.Rules[action] = actor, laid.Rules
	o.providers[action], o.policies[action] = p, laid
	return nil
}

// scope tells a provider's endpoint, account and credential apart from others, and gives
// none of them away: it is keyed with the ledger's secret.
func (o *office) scope(p realProvider) string {
	var parts []byte
	for _, part := range p.Identity() {
		parts = binary.AppendUvarint(parts, uint64(len(part)))
		parts = append(parts, part...)
	}
	return o.secret.Hash("provider scope", parts).String()[:32]
}

// checkDryRun refuses to let a real provider go on where the sandbox was: a dry run's
// operations would answer for real ones.
func (o *office) checkDryRun(ctx context.Context) error {
	for _, action := range actions {
		if o.ledger.Actors[action].Provider == sandbox.Name {
			continue
		}
		found, err := o.store.Find(ctx, ledger.Filter{Action: action, Provider: sandbox.Name, Limit: 1})
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("this ledger has sandbox operations of %s, and %s would answer for them; give real work a data directory of its own (--data-dir)",
				action, o.ledger.Actors[action].Provider)
		}
	}
	return nil
}

// unlock brings the two secrets: by environment, or from files beside the ledger that a
// first start makes.
func (o *office) unlock(ctx context.Context, dir string) (*ledger.Sealer, error) {
	used, err := ledger.HasOperations(ctx, o.store, nil)
	if err != nil {
		return nil, err
	}
	secret, from, err := secretFrom("ONCEWARD_SECRET", filepath.Join(dir, "secret"), !used)
	if err != nil {
		return nil, err
	}
	if o.secret, err = ledger.NewSecret(secret); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if err := ledger.CheckSecret(ctx, o.store, o.secret); err != nil {
		return nil, err
	}
	sealKey, from, err := secretFrom("ONCEWARD_SEAL_KEY", filepath.Join(dir, "seal_key"), !used)
	if err != nil {
		return nil, err
	}
	var previous [][]byte
	if value := os.Getenv("ONCEWARD_SEAL_KEY_PREVIOUS"); value != "" {
		key, err := ledger.ParseSecret(value)
		if err != nil {
			return nil, fmt.Errorf("ONCEWARD_SEAL_KEY_PREVIOUS: %w", err)
		}
		previous = append(previous, key)
	}
	sealer, err := ledger.NewSealer(sealKey, previous...)
	if err != nil {
		return nil, fmt.Errorf("%s, or ONCEWARD_SEAL_KEY_PREVIOUS: %w", from, err)
	}
	return sealer, nil
}

// secretFrom reads a secret and says where it stood.
func secretFrom(variable, path string, mayCreate bool) (secret []byte, from string, err error) {
	value := os.Getenv(variable)
	if value == "" {
		secret, err = ledger.LoadSecret(path, mayCreate)
		return secret, path, err
	}
	if secret, err = ledger.ParseSecret(value); err != nil {
		err = fmt.Errorf("%s: %w", variable, err)
	}
	return secret, variable, err
}

func (o *office) close() error {
	var err error
	if o.sandbox != nil {
		err = o.sandbox.Close()
	}
	return errors.Join(err, o.store.Close())
}
