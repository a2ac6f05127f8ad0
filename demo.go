package main

import "context"

type demoCommand struct{}

func (demoCommand) Run(ctx context.Context, s streams) error { return nil }
