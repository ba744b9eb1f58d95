package main

// #cgo LDFLAGS: -l:libhushcount.a -lm
// #include <hushcount.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"strings"
	"time"
	"unsafe"
)

// Sender makes the reports of one person, and delivers them. Goroutines may share it. One that could not be opened
// reports nothing, and the app goes on.
type Sender struct{ sender *C.hushcount_sender }

// Open returns a sender with its queue and its budget in a file. Free it with Close.
func Open(collector string, policy []byte, store string, delay time.Duration) (*Sender, error) {
	address, path, file := C.CString(collector), C.CString(store), C.CBytes(policy)
	defer C.free(unsafe.Pointer(address))
	defer C.free(unsafe.Pointer(path))
	defer C.free(file)
	bytes := C.hushcount_bytes{data: (*C.uint8_t)(file), length: C.size_t(len(policy))}
	options := C.hushcount_sender_options_of(address, bytes, path)
	options.delay_seconds = C.uint64_t(delay.Seconds())
	sender := new(Sender)
	return sender, failed(C.hushcount_sender_open(&options, &sender.sender))
}

// Start lets a thread deliver, until Stop or Close.
func (sender *Sender) Start() { C.hushcount_sender_start(sender.sender) }

// Report makes and queues the reports of a value, and returns what became of them.
func (sender *Sender) Report(value string) string {
	if strings.ContainsRune(value, 0) {
		value = "" // no item has a NUL: the value counts as "other", and is not cut
	}
	text := C.CString(value)
	defer C.free(unsafe.Pointer(text))
	return C.GoString(C.hushcount_reported_word(C.int(C.hushcount_sender_report(sender.sender, text, nil, 0))))
}

// Deliver sends due reports, or with early all of them, and returns how many the collector has now.
func (sender *Sender) Deliver(early bool) (uint64, error) {
	var delivery C.hushcount_delivery
	err := failed(C.hushcount_sender_deliver(sender.sender, C.bool(early), &delivery))
	return uint64(delivery.sent), err
}

// Spent returns sentences for the person about what the reports cost.
func (sender *Sender) Spent() ([]string, error) {
	var words *C.char
	if err := failed(C.hushcount_sender_spent(sender.sender, &words)); err != nil {
		return nil, err
	}
	defer C.hushcount_text_free(words)
	return strings.Split(C.GoString(words), "\n"), nil
}

// Forget opts the person out.
func (sender *Sender) Forget() error { return failed(C.hushcount_sender_forget(sender.sender)) }

// Stop ends the thread, and asks for what is still to be asked for.
func (sender *Sender) Stop() { C.hushcount_sender_stop(sender.sender) }

// Close frees the sender, which reports nothing from now on. No other call may be running.
func (sender *Sender) Close() {
	C.hushcount_sender_free(sender.sender)
	sender.sender = nil
}

func failed(err *C.hushcount_error) error {
	if err == nil {
		return nil
	}
	defer C.hushcount_error_free(err)
	return errors.New(C.GoString(C.hushcount_error_message(err)))
}
