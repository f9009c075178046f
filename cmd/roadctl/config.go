package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

const defaultURL = "http://127.0.0.1:8080"

// setting is a value and where it came from: flag, environment, file or default.
type setting struct{ value, source string }

type settings struct {
	file     string
	url, key setting
	saved    savedConfig
}

// savedConfig is the settings file. Keys are kept by server, so that another --url is never shown this one's key.
type savedConfig struct {
	URL  string            `json:"url,omitempty"`
	Keys map[string]string `json:"keys,omitempty"`
}

// dir is a folder of the XDG base directories.
func (a *app) dir(variable string, fallback ...string) string {
	base := a.env(variable)
	if !filepath.IsAbs(base) {
		base = filepath.Join(append([]string{a.env("HOME")}, fallback...)...)
	}
	return filepath.Join(base, "roadstead")
}

func (a *app) configFile() string {
	if a.flags.config != "" {
		return a.flags.config
	}
	if f := a.env("ROADSTEAD_CONFIG"); f != "" {
		return f
	}
	return filepath.Join(a.dir("XDG_CONFIG_HOME", ".config"), "roadctl.json")
}

func (a *app) configSource() string {
	return first(setting{a.flags.config, "flag --config"}, setting{a.env("ROADSTEAD_CONFIG"), "environment ROADSTEAD_CONFIG"}, setting{"", "default"}).source
}

// settings resolves flag > environment > file > default.
func (a *app) settings() (settings, error) {
	s := settings{file: a.configFile()}
	raw, err := os.ReadFile(s.file)
	if err == nil {
		if err = json.Unmarshal(raw, &s.saved); err != nil {
			return s, usagef("the settings file %s is not readable as JSON: %v", s.file, err)
		}
		if info, err := os.Stat(s.file); err == nil && info.Mode().Perm()&0o077 != 0 && len(s.saved.Keys) > 0 {
			_, _ = fmt.Fprintf(a.err, "warning: %s holds keys and others may read it; run: chmod 600 %s\n", s.file, s.file)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read the settings file: %w", err)
	}
	s.url = first(setting{a.flags.url, "flag --url"}, setting{a.env("ROADSTEAD_URL"), "environment ROADSTEAD_URL"},
		setting{s.saved.URL, "file " + s.file}, setting{defaultURL, "default"})
	s.key, err = a.key(s)
	return s, err
}

func (a *app) key(s settings) (setting, error) {
	file := first(setting{a.flags.keyFile, "flag --key-file"}, setting{a.env("ROADSTEAD_API_KEY_FILE"), "environment ROADSTEAD_API_KEY_FILE"})
	if file.value != "" {
		key, err := readKey(file.value)
		return setting{key, file.source + " = " + file.value}, err
	}
	return first(setting{strings.TrimSpace(a.env("ROADSTEAD_API_KEY")), "environment ROADSTEAD_API_KEY"},
		setting{s.saved.Keys[origin(s.url.value)], "file " + s.file}, setting{"", "default"}), nil
}

func first(list ...setting) setting {
	for _, s := range list {
		if s.value != "" {
			return s
		}
	}
	return list[len(list)-1]
}

func readKey(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if key == "" {
		return "", usagef("the key file %s is empty", file)
	}
	return key, nil
}

// origin is the part of an address that a key belongs to.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// save writes the settings file, readable by its owner alone.
func (c savedConfig) save(file string) error {
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the settings folder: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".roadctl.*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the settings file: %w", err)
	}
	_, err = tmp.Write(append(raw, '\n'))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("write the settings file: %w", err)
	}
	return nil
}

func configCommand(a *app) *cobra.Command {
	return group("config", "Settings of this program", &cobra.Command{
		Use: "print", Short: "Show each setting and where it comes from", Args: cobra.NoArgs,
		Long: "Shows each setting and where it comes from: flag, environment, file or default, in this order.\nThe API key itself is never shown.",
		RunE: func(*cobra.Command, []string) error {
			s, err := a.settings()
			if err != nil {
				return err
			}
			key := "(none)"
			if s.key.value != "" {
				key = "(set, not shown)"
			}
			type row struct {
				Name   string `json:"name"`
				Value  string `json:"value"`
				Source string `json:"source"`
			}
			rows := []row{{"url", s.url.value, s.url.source}, {"api-key", key, s.key.source}, {"config", s.file, a.configSource()}, {"state-dir", a.stateDir(), "default"}}
			return show(a, rows, []string{"SETTING", "VALUE", "SOURCE"}, func(r row) []string { return []string{r.Name, r.Value, r.Source} })
		},
	})
}

// stateDir is where unfinished uploads are remembered.
func (a *app) stateDir() string {
	return filepath.Join(a.dir("XDG_STATE_HOME", ".local", "state"), "uploads")
}
