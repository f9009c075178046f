package archive

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/roadstead/roadstead/internal/fault"
)

// Image says what an image asks to be run as. The command of a Run overrules Cmd as `docker run` would.
type Image struct {
	Entrypoint []string
	Cmd        []string
	Env        []string // NAME=value
	WorkDir    string   // "" means /
}

// UnpackImage writes the file tree of the image in source into dir, which must exist and be empty. source is an OCI image
// layout: a folder, or a tar of one, gzipped or not. Of an image for many platforms it takes the one of this machine.
// Every blob it uses is checked against its digest. Links stay, as they stay inside dir even while unpacking; device
// nodes are dropped below /dev, which every sandbox makes anew, and refused elsewhere; set-user-id bits are dropped; all
// is owned by the caller and readable by everyone. scratch is a folder for what lies in between (a tar's layout).
func UnpackImage(ctx context.Context, source, dir, scratch string, l Limits) (Image, error) {
	if err := l.Validate(); err != nil {
		return Image{}, err
	}
	folder, drop, err := layoutFolder(source, scratch, l)
	if err != nil {
		return Image{}, err
	}
	defer drop()
	image, err := chooseImage(folder)
	if err != nil {
		return Image{}, err
	}
	if err := applyLayers(ctx, folder, image, dir, l); err != nil {
		return Image{}, err
	}
	return describeImage(image)
}

// layoutFolder is the layout as a folder, and what undoes it.
func layoutFolder(source, scratch string, l Limits) (folder string, drop func(), err error) {
	info, err := os.Stat(source)
	if err != nil {
		return "", nil, fmt.Errorf("open the image: %w", err)
	}
	if info.IsDir() {
		return source, func() {}, nil
	}
	f, err := os.Open(source)
	if err != nil {
		return "", nil, fmt.Errorf("open the image: %w", err)
	}
	defer f.Close()
	folder, err = os.MkdirTemp(scratch, "layout-")
	if err != nil {
		return "", nil, fmt.Errorf("make room for the image's layout: %w", err)
	}
	drop = func() { _ = os.RemoveAll(folder) } // in a scratch folder, which its owner empties
	if err := Unpack(f, folder, l); err != nil {
		drop()
		return "", nil, err
	}
	return folder, drop, nil
}

// chooseImage follows the indexes of a layout to the image of this machine's platform.
func chooseImage(folder string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, fault.Invalid("image", "is not an OCI image layout: %v", err)
	}
	image, err := descend(index, 0)
	if err != nil {
		return nil, err
	}
	if image == nil {
		return nil, fault.Invalid("image", "holds no image for linux/%s", runtime.GOARCH)
	}
	return image, nil
}

const maxIndexes = 4 // an index of indexes is rare, a deeper one is a maze

func descend(index v1.ImageIndex, depth int) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fault.Invalid("image", "has an unreadable index: %v", err)
	}
	for _, d := range manifest.Manifests {
		switch {
		case d.MediaType.IsImage() && fits(d.Platform):
			image, err := index.Image(d.Digest)
			if err != nil {
				return nil, fault.Invalid("image", "has an unreadable manifest %s: %v", d.Digest, err)
			}
			return image, nil
		case d.MediaType.IsIndex() && depth < maxIndexes:
			inner, err := index.ImageIndex(d.Digest)
			if err != nil {
				return nil, fault.Invalid("image", "has an unreadable index %s: %v", d.Digest, err)
			}
			if image, err := descend(inner, depth+1); err != nil || image != nil {
				return image, err
			}
		}
	}
	return nil, nil
}

// fits reports whether an image for p runs here; an image that doesn't say is taken at its word's absence.
func fits(p *v1.Platform) bool {
	return p == nil || p.Architecture == "" || p.OS == "linux" && p.Architecture == runtime.GOARCH
}

func describeImage(image v1.Image) (Image, error) {
	c, err := image.ConfigFile()
	if err != nil {
		return Image{}, fault.Invalid("image", "has an unreadable config: %v", err)
	}
	return Image{Entrypoint: c.Config.Entrypoint, Cmd: c.Config.Cmd, Env: c.Config.Env, WorkDir: c.Config.WorkingDir}, nil
}

// applyLayers lays the layers over each other, the lowest first, as a container engine would.
func applyLayers(ctx context.Context, folder string, image v1.Image, dir string, l Limits) error {
	manifest, err := image.Manifest()
	if err != nil {
		return fault.Invalid("image", "has an unreadable manifest: %v", err)
	}
	name, err := image.ConfigName()
	if err != nil {
		return fault.Invalid("image", "has an unreadable manifest: %v", err)
	}
	if err := checkBlob(folder, name); err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return fault.Invalid("image", "has unreadable layers: %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the folder to unpack into: %w", err)
	}
	defer root.Close()
	b := budget{Limits: l}
	for i, layer := range layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := checkBlob(folder, manifest.Layers[i].Digest); err != nil {
			return err
		}
		if err := applyLayer(root, layer, &b); err != nil {
			return fmt.Errorf("layer %d of %d: %w", i+1, len(layers), err)
		}
	}
	return flush(root)
}

func applyLayer(root *os.Root, layer v1.Layer, b *budget) error {
	stream, err := layer.Uncompressed()
	if err != nil {
		return unreadable(err)
	}
	defer stream.Close()
	on := overlay{root: root, fresh: map[string]struct{}{}}
	for t := tar.NewReader(b.bounded(stream)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}
		name, err := cleanName(h.Name)
		if err != nil {
			return err
		}
		size := int64(0)
		if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse {
			size = h.Size
		}
		if err := b.spend(entry{name: name, size: size}); err != nil {
			return err
		}
		if err := on.apply(name, h, t); err != nil {
			return unreadable(err)
		}
	}
}

// checkBlob compares a blob of the layout with the digest that names it: the layout comes from a stranger, and a name is
// only a claim.
func checkBlob(folder string, want v1.Hash) error {
	if want.Algorithm != "sha256" {
		return fault.Invalid("image", "names a blob by %s; sha256 is expected", want.Algorithm)
	}
	f, err := os.Open(filepath.Join(folder, "blobs", want.Algorithm, want.Hex))
	if errors.Is(err, os.ErrNotExist) {
		return fault.Invalid("image", "lacks the blob %s", want)
	}
	if err != nil {
		return fmt.Errorf("open the blob %s: %w", want, err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("read the blob %s: %w", want, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.Hex {
		return fault.New(fault.IntegrityMismatch, "image: the blob %s has other content than its name says", want)
	}
	return nil
}
