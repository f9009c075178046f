package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roadstead/roadstead/api"
	"github.com/roadstead/roadstead/internal/catalog"
	"github.com/roadstead/roadstead/internal/fault"
	"github.com/roadstead/roadstead/sdk"
)

const packagesHelp = `A package is a folder with what a Run needs and a file roadstead.json that says how it runs:

  {"name": "report", "version": "1.0.0", "entry": ["python3", "main.py"],
   "inputs": [{"name": "prices", "type": "file", "required": true}, {"name": "window", "type": "int", "default": 30}],
   "outputs": [{"name": "table.csv"}], "policy": {"timeoutSeconds": 600}}

A version never changes once it is published. PACKAGE is NAME, or TENANT/NAME for a public package of another tenant.`

func packagesCommand(a *app) *cobra.Command {
	cmd := group("packages", "Packages that Runs run", packagesPublish(a), packagesList(a), packagesShow(a), packagesVersions(a),
		packagesState(a, "deprecate", "deprecated", "Tell users of a version to take another; it still runs"),
		packagesState(a, "yank", "yanked", "Withdraw a version: new Runs don't get it, those submitted before still do"),
		packagesState(a, "restore", "active", "Undo deprecate or yank"),
		packagesPublic(a, "share", true, "Let every tenant run a package (admins of the tenant)"),
		packagesPublic(a, "unshare", false, "Keep a package to its tenant again (admins of the tenant)"))
	cmd.Long = packagesHelp
	return cmd
}

// withClient runs f with a client for the server in the settings.
func (a *app) withClient(ctx context.Context, f func(ctx context.Context, c *sdk.Client) error) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	defer c.Close()
	return f(ctx, c)
}

// splitPackage reads [TENANT/]NAME[@VERSION].
func splitPackage(s string) (tenant, name, version string, err error) {
	r, err := catalog.ParseRef("PACKAGE", s)
	if err != nil {
		return "", "", "", usagef("%s", fault.From(err).Message)
	}
	return r.Tenant, r.Name, r.Version, nil
}

func packagesPublish(a *app) *cobra.Command {
	in := api.PublishPackage{}
	cmd := &cobra.Command{
		Use: "publish DIR", Short: "Pack a folder, upload it and publish it as a version", Args: cobra.ExactArgs(1), Long: packagesHelp,
		Example: "  roadctl packages publish examples/report --version 1.1.0",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error { return a.publish(ctx, c, args[0], in) })
		},
	}
	cmd.Flags().StringVar(&in.Tenant, "tenant", "", "tenant id, for operators (default: your own)")
	cmd.Flags().StringVar(&in.Version, "version", "", "version instead of the one in the manifest")
	cmd.Flags().StringVar(&in.Repository, "repository", "", "repository to upload to (default: the tenant's own for packages)")
	return cmd
}

func (a *app) publish(ctx context.Context, c *sdk.Client, dir string, in api.PublishPackage) error {
	m, err := manifestOf(dir)
	if err != nil {
		return err
	}
	if in.Version == "" {
		in.Version = m.Version
	}
	if err := catalog.CheckVersion("version", in.Version); err != nil {
		return usagef("%s", fault.From(err).Message)
	}
	file, ending := "", ".tar"
	if m.Kind == string(catalog.Image) {
		if m.Image == "" || !filepath.IsLocal(m.Image) {
			return usagef("%s: image: must name the image's tar beside it", api.ManifestFile)
		}
		file, in.Manifest = filepath.Join(dir, m.Image), &m
	} else {
		ending = ".tar.gz"
		packed, err := packed(dir)
		if err != nil {
			return err
		}
		file = packed
		defer func() { _ = os.Remove(packed) }() // a temporary file
	}
	if in.Repository == "" {
		if in.Repository, err = c.PackageInbox(ctx, in.Tenant); err != nil {
			return err
		}
	}
	r := a.report(m.Name + "@" + in.Version)
	stored, err := c.Upload(ctx, sdk.Upload{File: file, Repository: in.Repository, Path: m.Name + "/" + in.Version + ending, StateDir: a.stateDir(), Events: r.event})
	r.close()
	if err != nil {
		return fmt.Errorf("upload the package: %w", err)
	}
	in.Digest = stored.Digest
	v, err := c.PublishPackage(ctx, in)
	if err != nil {
		return err
	}
	return showOne(a, v, "%s@%s %s", v.Package, v.Version, v.Digest)
}

// manifestOf reads a package's manifest and refuses what the server would, before anything is sent.
func manifestOf(dir string) (catalog.Manifest, error) {
	text, err := os.ReadFile(filepath.Join(dir, api.ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return catalog.Manifest{}, usagef("%s has no %s; \"roadctl packages --help\" shows one", dir, api.ManifestFile)
	}
	if err != nil {
		return catalog.Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	m, err := catalog.ParseManifest(text)
	if err != nil {
		return m, usagef("%s: %s", api.ManifestFile, fault.From(err).Message)
	}
	return m, nil
}

// packed is a temporary file with the packed folder.
func packed(dir string) (string, error) {
	f, err := os.CreateTemp("", "roadctl-package-*.tar.gz")
	if err != nil {
		return "", fmt.Errorf("pack the folder: %w", err)
	}
	if err = errors.Join(pack(dir, f), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func packagesList(a *app) *cobra.Command {
	var f sdk.PackageFilter
	cmd := &cobra.Command{
		Use: "ls", Short: "List packages", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.Packages(ctx, f))
				if err != nil {
					return err
				}
				return show(a, all, []string{"NAME", "LATEST", "KIND", "TENANT", "SHARED", "MADE"}, func(p api.Package) []string {
					return []string{p.Name, orDash(p.Latest), p.Kind, p.TenantName, yesNo(p.Public), when(p.CreatedAt, a.now())}
				})
			})
		},
	}
	cmd.Flags().StringVar(&f.Tenant, "tenant", "", "tenant id (default: your own)")
	cmd.Flags().StringVar(&f.Kind, "kind", "", "archive or image (default: both)")
	cmd.Flags().BoolVar(&f.Public, "public", false, "those that every tenant may run")
	return cmd
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func packagesShow(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "show PACKAGE[@VERSION]", Short: "Show a version with its manifest; without VERSION the one that the name means", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, name, version, err := splitPackage(args[0])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				v, err := c.PackageVersion(ctx, tenant, name, version)
				if err != nil {
					return err
				}
				return a.json(v) // a manifest has the form of its file
			})
		},
	}
}

func packagesVersions(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "versions PACKAGE", Short: "List the versions of a package, highest first", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, name, _, err := splitPackage(args[0])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				all, err := collect(c.PackageVersions(ctx, tenant, name))
				if err != nil {
					return err
				}
				return show(a, all, []string{"VERSION", "STATE", "SIZE", "PUBLISHED", "DIGEST", "NOTE"}, func(v api.PackageVersion) []string {
					return []string{v.Version, v.State, amount(v.Size), when(v.CreatedAt, a.now()), shortDigest(v.Digest), orDash(v.Note)}
				})
			})
		},
	}
}

func packagesState(a *app, verb, state, short string) *cobra.Command {
	in := api.PackageVersionState{State: state}
	cmd := &cobra.Command{
		Use: verb + " PACKAGE@VERSION", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, name, version, err := splitPackage(args[0])
			if err != nil {
				return err
			}
			if version == "" {
				return usagef("name the version: %s@VERSION", args[0])
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				v, err := c.SetPackageState(ctx, tenant, name, version, in)
				if err != nil {
					return err
				}
				return showOne(a, v, "%s@%s is %s", v.Package, v.Version, v.State)
			})
		},
	}
	if state != "active" {
		cmd.Flags().StringVar(&in.Note, "note", "", "why, and what to use instead; told to those who use it")
	}
	return cmd
}

func packagesPublic(a *app, verb string, public bool, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " PACKAGE", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			tenant, name, _, err := splitPackage(args[0])
			if err != nil {
				return err
			}
			return a.withClient(cmd.Context(), func(ctx context.Context, c *sdk.Client) error {
				p, err := c.Package(ctx, tenant, name)
				if err != nil {
					return err
				}
				if p, err = c.ShowPackage(ctx, tenant, name, p.Revision, public); err != nil {
					return err
				}
				whose := "its tenant's only"
				if p.Public {
					whose = "every tenant's, as " + p.TenantName + "/" + p.Name
				}
				return showOne(a, p, "%s", strings.Join([]string{p.Name, "is", whose}, " "))
			})
		},
	}
}
