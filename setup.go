package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/ledger/sqlite"
	"github.com/onceward/onceward/providers"
	"github.com/onceward/onceward/providers/sandbox"
)

// dataFlags say where things are kept.
type dataFlags struct {
	DataDir string `env:"ONCEWARD_DATA_DIR" placeholder:"DIR" help:"Where the ledger, the secrets and the sandbox's journal are. Default: onceward/ in the user's state directory."`
	Ledger  string `env:"ONCEWARD_LEDGER" placeholder:"URL" help:"The ledger: sqlite:PATH. Default: sqlite:<data-dir>/ledger.db."`
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
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(s.err, o))
	}
	return slog.New(slog.NewTextHandler(s.err, o))
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

// ledgerPath is the embedded ledger's file.
func (f dataFlags) ledgerPath(dir string) (string, error) {
	if f.Ledger == "" {
		return filepath.Join(dir, "ledger.db"), nil
	}
	path, ok := strings.CutPrefix(f.Ledger, "sqlite:")
	if !ok || path == "" {
		return "", errors.New("--ledger is sqlite: and a path, such as sqlite:/var/lib/onceward/ledger.db")
	}
	return path, nil
}

// An office is all that the commands work with: the ledger and the outside world.
type office struct {
	ledger    *ledger.Ledger
	store     ledger.Store
	secret    ledger.Secret
	providers map[string]providers.Provider // by action type
	sandbox   *sandbox.Sandbox
	log       *slog.Logger
}

// openOffice opens the ledger, ties it to its secrets, and reaches the providers. With create,
// what is missing is made; else a missing ledger is an error.
func openOffice(ctx context.Context, data dataFlags, box sandboxFlags, log *slog.Logger, create bool) (o *office, err error) {
	dir, err := data.dir()
	if err != nil {
		return nil, err
	}
	path, err := data.ledgerPath(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !create {
		return nil, fmt.Errorf("%w: there is no ledger at %s; name the data directory of your server with --data-dir", errRefused, path)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("can't make the data directory: %w", err)
	}
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	o = &office{store: store, log: log}
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
	if o.sandbox, err = box.open(ctx, dir); err != nil {
		return nil, err
	}
	o.ledger = &ledger.Ledger{Store: store, Sealer: sealer, Log: log, Actors: map[string]ledger.Actor{}}
	o.providers = map[string]providers.Provider{}
	for _, action := range []string{providers.EmailSend, providers.PaymentOrderCreate, providers.RefundCreate} {
		actor, ok := providers.Actor(sandbox.Name, o.sandbox.Scope(), action, o.sandbox)
		if !ok {
			return nil, fmt.Errorf("the provider %s doesn't serve %s", sandbox.Name, action)
		}
		o.ledger.Actors[action], o.providers[action] = actor, o.sandbox
	}
	return o, nil
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
