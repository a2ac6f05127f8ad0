package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// standIns take the place of secrets and certificates that aren't on this machine, so that
// the providers can be made and asked for their traits. The providers are never used.
type standIns struct {
	config  *configuration
	dir     string
	missing []remark
}

// fill looks through the sections that serve a tool.
func (s *standIns) fill() error {
	if err := s.write(); err != nil {
		return err
	}
	var used []string
	for _, action := range actions {
		if name := s.config.Tools[action].Provider; !slices.Contains(used, name) && s.config.section(name).IsValid() {
			used = append(used, name)
		}
	}
	for _, name := range used {
		s.walk(s.config.section(name), "$.providers."+name)
	}
	if hook := s.config.Alarms.Webhook; hook != nil {
		s.walk(reflect.ValueOf(hook).Elem(), "$.alarms.webhook")
	}
	return nil
}

// section is a provider's section; invalid if there is none.
func (c *configuration) section(name string) reflect.Value {
	for field, v := range yamlFields(reflect.ValueOf(&c.Providers).Elem()) {
		if field == name && !v.IsNil() {
			return v.Elem()
		}
	}
	return reflect.Value{}
}

// yamlFields are a struct's fields by their names in YAML, those of inlined structs too.
func yamlFields(v reflect.Value) iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for i := range v.NumField() {
			tag, inline := strings.CutSuffix(v.Type().Field(i).Tag.Get("yaml"), ",inline")
			switch {
			case inline:
				for name, field := range yamlFields(v.Field(i)) {
					if !yield(name, field) {
						return
					}
				}
			case tag != "" && tag != "-":
				if !yield(tag, v.Field(i)) {
					return
				}
			}
		}
	}
}

func (s *standIns) walk(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			s.walk(v.Elem(), path)
		}
	case reflect.Struct:
		for name, field := range yamlFields(v) {
			s.walk(field, path+"."+name)
		}
		s.replace(maps.Collect(yamlFields(v)), path)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(key))
			s.walk(element, path+".'"+key.String()+"'")
			v.SetMapIndex(key, element)
		}
	default:
	}
}

// replace replaces what isn't here among the fields of one struct: those named env and file,
// or ending so.
func (s *standIns) replace(fields map[string]reflect.Value, path string) {
	var absent []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name].Kind() != reflect.String || fields[name].String() == "" {
			continue
		}
		what := fields[name].String()
		if stem, ok := strings.CutSuffix(name, "env"); ok && os.Getenv(what) == "" && fields[stem+"file"].String() == "" {
			s.miss(path+"."+name, fmt.Sprintf("the environment variable %s is empty", what))
			fields[name].SetString("")
			absent = append(absent, stem+"file")
		}
		if strings.HasSuffix(name, "file") && !readable(what) {
			s.miss(path+"."+name, fmt.Sprintf("the file %s can't be read", what))
			absent = append(absent, name)
		}
	}
	for _, name := range absent {
		switch name {
		case "certificate_file", "certificate_key_file": // the other half has to fit
			fields["certificate_file"].SetString(s.certificate())
			fields["certificate_key_file"].SetString(s.certificate())
		case "ca_file":
			fields[name].SetString(s.certificate())
		default:
			fields[name].SetString(s.secret())
		}
	}
}

func (s *standIns) miss(path, text string) {
	s.missing = append(s.missing, s.config.remark(path, text))
}

func (s *standIns) secret() string      { return filepath.Join(s.dir, "secret") }
func (s *standIns) certificate() string { return filepath.Join(s.dir, "certificate.pem") }

func readable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// write makes the stand-ins: a secret that has the form that every provider asks for, and a
// certificate with its key.
func (s *standIns) write() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(s.certificate(), both, 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.secret(), []byte("sk_test_stand_in"), 0o600)
}
