module example.com/hushcount

go 1.21
