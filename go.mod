module github.com/roadstead/roadstead

go 1.26
