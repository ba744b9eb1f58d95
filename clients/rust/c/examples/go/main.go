// Reports each line of standard input, and prints what became of it.
//
//	report COLLECTOR POLICY_FILE STORE_FILE < values.txt
package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: report COLLECTOR POLICY_FILE STORE_FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(collector, policyFile, store string) error {
	policy, err := os.ReadFile(policyFile)
	if err != nil {
		return err
	}
	sender, err := Open(collector, policy, store, 0) // for a demonstration: an app lets its reports wait
	if err != nil {
		return err
	}
	defer sender.Close()

	words := map[string]int{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words[sender.Report(lines.Text())]++
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for word, number := range words {
		fmt.Println(word, number)
	}
	sent, err := sender.Deliver(true)
	if err != nil {
		return err
	}
	fmt.Println("sent", sent)
	spent, err := sender.Spent()
	for _, sentence := range spent {
		fmt.Println(sentence)
	}
	return err
}
