/* Loaded into a process of killed.rs: at one of its calls on files in a folder, the process ends or the call fails. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 1024

static char ours[FILES];
static long calls, at;
static const char *folder, *how, *counted;

__attribute__((constructor)) static void begin(void) {
    folder = getenv("HUSHCOUNT_FOLDER");
    how = getenv("DIE_HOW");
    counted = getenv("DIE_COUNT");
    at = how == NULL ? -1 : atol(getenv("DIE_AT"));
}

/* Say how many calls there were. */
__attribute__((destructor)) static void end(void) {
    FILE *to = counted == NULL ? NULL : fopen(counted, "w");
    if (to != NULL) {
        fprintf(to, "%ld", calls);
        fclose(to);
    }
}

static int is(const char *name) { return how != NULL && strcmp(how, name) == 0; }

/* Count a call; return the error that it must fail with, or 0. A full disk stays full, a broken one is broken once. */
static int failing(int grows) {
    long now = calls++;
    if (at < 0 || now < at) return 0;
    if (is("kill") || is("torn")) kill(getpid(), SIGKILL);
    if (is("full")) return grows ? ENOSPC : 0;
    return now == at ? EIO : 0;
}

static int is_ours(int file) { return file >= 0 && file < FILES && ours[file]; }

/* Fork for a test without unsafe code: in the child the opening fails, and the parent waits for its good end. */
static int forked(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) return alarm(60), errno = ECHILD, -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
    return syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY);
}

static int opened(const char *path, int flags, int mode) {
    int in = folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
    if (in && strcmp(path + strlen(folder), "/fork") == 0) return forked();
    int error = in ? failing((flags & O_CREAT) != 0 && access(path, F_OK) != 0) : 0;
    if (error != 0) return errno = error, -1;
    int file = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (in && file >= 0 && file < FILES) ours[file] = 1;
    return file;
}

#define OPEN(name)                                    \
    int name(const char *path, int flags, ...) {      \
        va_list rest;                                 \
        va_start(rest, flags);                        \
        int mode = va_arg(rest, int);                 \
        va_end(rest);                                 \
        return opened(path, flags, mode);             \
    }
OPEN(open)
OPEN(open64)

/* Begin to write: half of it reaches the disk if the process is killed in the middle. */
static int writing(int file, const void *from, size_t length, off_t place) {
    if (!is_ours(file)) return 0;
    if (is("torn") && calls == at) syscall(SYS_pwrite64, file, from, length / 2, place);
    return failing(1);
}

ssize_t write(int file, const void *from, size_t length) {
    int error = writing(file, from, length, is_ours(file) ? lseek(file, 0, SEEK_CUR) : 0);
    return error != 0 ? (errno = error, -1) : syscall(SYS_write, file, from, length);
}

#define PWRITE(name)                                                                               \
    ssize_t name(int file, const void *from, size_t length, off_t place) {                         \
        int error = writing(file, from, length, place);                                            \
        return error != 0 ? (errno = error, -1) : syscall(SYS_pwrite64, file, from, length, place); \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define ON_FILE(name, parameters, call)                         \
    int name parameters {                                       \
        int error = is_ours(file) ? failing(0) : 0;             \
        return error != 0 ? (errno = error, -1) : (int)syscall call; \
    }
ON_FILE(fsync, (int file), (SYS_fsync, file))
ON_FILE(fdatasync, (int file), (SYS_fdatasync, file))
ON_FILE(ftruncate, (int file, off_t length), (SYS_ftruncate, file, length))
ON_FILE(ftruncate64, (int file, off_t length), (SYS_ftruncate, file, length))

int close(int file) {
    int error = is_ours(file) ? failing(0) : 0;
    if (is_ours(file)) ours[file] = 0;
    int closed = syscall(SYS_close, file);
    return error != 0 ? (errno = error, -1) : closed;
}

int unlink(const char *path) {
    int error = folder != NULL && strncmp(path, folder, strlen(folder)) == 0 ? failing(0) : 0;
    return error != 0 ? (errno = error, -1) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
