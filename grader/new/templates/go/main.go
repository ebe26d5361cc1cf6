// `compiler VERB [options]` reads a program from standard input. Its answer goes to standard
// output with exit status 0; faults of the program go to standard error with exit status 1, each as
// FILE:LINE:COL: CODE message.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	if verb != "simplify" && verb != "compile" {
		fmt.Fprintf(os.Stderr, "expected one of the verbs simplify, compile, got %q\n", verb)
		os.Exit(1)
	}
	program, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintf(os.Stderr, "standard input cannot be read: %v\n", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "<stdin>:1:1: E000 %s of these %d bytes is not implemented\n", verb, len(program))
	os.Exit(1)
}
