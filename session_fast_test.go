//go:build !race

package main

// slowness is how much longer everything takes than usual.
const slowness = 1
