/* crate: packs directories into archives, lists and unpacks them. FORMAT.md is the contract. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EDITION 1
#define LONGEST_PATH 65535
#define LONGEST_NAME 255

enum { SYSTEM = 1, USAGE = 2, DAMAGED = 3 };

typedef struct {
    char kind;
    char *path;
    unsigned mode;
    uint64_t time;
    uint64_t size;
    uint8_t *content;
} Entry;

static Entry *entries;
static size_t count, room;
static const char *unfinished; /* A file to remove when packing fails. */

static _Noreturn void fail(int status, const char *format, ...)
{
    static const char *const words[] = {"", "system", "usage", "damaged"};
    va_list arguments;
    if (unfinished)
        unlink(unfinished);
    fprintf(stderr, "crate: %s: ", words[status]);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

static void *must(void *memory)
{
    if (!memory)
        fail(SYSTEM, "no memory");
    return memory;
}

static Entry *add_entry(void)
{
    if (count == room) {
        room = room ? 2 * room : 64;
        entries = must(realloc(entries, room * sizeof *entries));
    }
    memset(&entries[count], 0, sizeof *entries);
    return &entries[count++];
}

static uint32_t crc32_of(const uint8_t *bytes, size_t size)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++)
                value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
            table[i] = value;
        }
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++)
        crc = table[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    return ~crc;
}

/* Paths by their hash: where each entry is that the tree has. */

static size_t *slots, slots_size;

static size_t *slot_of(const char *path, size_t length)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (uint8_t)path[i]) * 1099511628211u;
    size_t at = hash & (slots_size - 1);
    while (slots[at]) {
        const char *other = entries[slots[at] - 1].path;
        if (strncmp(other, path, length) == 0 && other[length] == 0)
            break;
        at = (at + 1) & (slots_size - 1);
    }
    return &slots[at];
}

/* Check how entries stand to each other. */
static void place_entries(void)
{
    slots_size = 64;
    while (slots_size < 2 * count)
        slots_size *= 2;
    slots = must(calloc(slots_size, sizeof *slots));
    for (size_t i = 0; i < count; i++) {
        const char *path = entries[i].path, *slash = strrchr(path, '/');
        if (slash) {
            size_t parent = *slot_of(path, slash - path);
            if (!parent || entries[parent - 1].kind != 'D')
                fail(DAMAGED, "an entry is in no directory");
        }
        size_t *slot = slot_of(path, strlen(path));
        if (*slot)
            fail(DAMAGED, "a path occurs twice");
        *slot = i + 1;
    }
}

/* Reading. */

static uint8_t *archive;
static size_t archive_size, at;

static size_t left(void)
{
    return archive_size - at;
}

static uint8_t *read_bytes(uint64_t size)
{
    if (size > left())
        fail(DAMAGED, "it ends too early");
    uint8_t *bytes = archive + at;
    at += size;
    return bytes;
}

static uint64_t read_number(void)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 63; shift += 7) {
        uint8_t byte = *read_bytes(1);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            if (byte == 0 && shift > 0)
                fail(DAMAGED, "a number is longer than it needs to be");
            return value;
        }
    }
    fail(DAMAGED, "a number is too large");
}

static unsigned read_mode(void)
{
    uint64_t mode = read_number();
    if (mode > 0777)
        fail(DAMAGED, "a mode has more than permissions");
    return mode;
}

static void check_name(const uint8_t *name, size_t length)
{
    if (length == 0 || length > LONGEST_NAME || memchr(name, 0, length) || memchr(name, '/', length)
        || (length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.'))
        fail(DAMAGED, "a name is none");
}

static char *read_path(void)
{
    uint64_t length = read_number();
    if (length > LONGEST_PATH)
        fail(DAMAGED, "a path is too long");
    const uint8_t *bytes = read_bytes(length);
    for (size_t start = 0, end = 0; end <= length; end++)
        if (end == length || bytes[end] == '/') {
            check_name(bytes + start, end - start);
            start = end + 1;
        }
    char *path = must(malloc(length + 1));
    memcpy(path, bytes, length);
    path[length] = 0;
    return path;
}

static void read_crc(const uint8_t *bytes, size_t size)
{
    const uint8_t *stored = read_bytes(4);
    uint32_t crc = stored[0] | stored[1] << 8 | stored[2] << 16 | (uint32_t)stored[3] << 24;
    if (crc != crc32_of(bytes, size))
        fail(DAMAGED, "a checksum is wrong");
}

static void read_file(Entry *entry)
{
    entry->mode = read_mode();
    entry->time = read_number();
    entry->size = read_number();
    entry->content = read_bytes(entry->size);
    read_crc(entry->content, entry->size);
}

static void read_entries(void)
{
    for (;;) {
        char kind = *read_bytes(1);
        if (kind == 'E')
            break;
        if (kind != 'F' && kind != 'D')
            fail(DAMAGED, "an entry has no kind");
        Entry *entry = add_entry();
        entry->kind = kind;
        entry->path = read_path();
        if (kind == 'F')
            read_file(entry);
        else
            entry->mode = read_mode();
    }
    if (read_number() != count)
        fail(DAMAGED, "the count is wrong");
    if (left())
        fail(DAMAGED, "something comes behind the end");
}

static uint8_t *read_all(int file, size_t *size)
{
    size_t space = 65536;
    uint8_t *bytes = must(malloc(space));
    *size = 0;
    for (;;) {
        if (*size == space)
            bytes = must(realloc(bytes, space *= 2));
        ssize_t got = read(file, bytes + *size, space - *size);
        if (got < 0)
            fail(SYSTEM, "reading: %s", strerror(errno));
        if (got == 0)
            return bytes;
        *size += got;
    }
}

static void read_archive(const char *name)
{
    int file = open(name, O_RDONLY);
    if (file < 0)
        fail(SYSTEM, "%s", strerror(errno));
    archive = read_all(file, &archive_size);
    close(file);
    if (memcmp(read_bytes(5), "CRATE", 5) != 0)
        fail(DAMAGED, "it is no archive");
    uint8_t edition = *read_bytes(1);
    if (edition < 1 || edition > EDITION)
        fail(DAMAGED, "it is of an edition that nobody knows");
    read_entries();
    place_entries();
}

/* Listing. */

static void print_escaped(const char *text)
{
    for (const uint8_t *byte = (const uint8_t *)text; *byte; byte++)
        if (*byte < 32 || *byte > 126 || *byte == '\\')
            printf("\\x%02x", *byte);
        else
            putchar(*byte);
}

static void list(void)
{
    for (Entry *entry = entries; entry < entries + count; entry++) {
        if (entry->kind == 'D')
            printf("D %03o - - ", entry->mode);
        else
            printf("F %03o %llu %llu ", entry->mode, (unsigned long long)entry->size, (unsigned long long)entry->time);
        print_escaped(entry->path);
        putchar('\n');
    }
}

/* The tree. A path may be longer than what the system takes at once, so it is walked name by name. */

static int root;

static int open_directory(const char *path)
{
    int directory = dup(root);
    char name[LONGEST_NAME + 1];
    while (*path && directory >= 0) {
        size_t length = strcspn(path, "/");
        memcpy(name, path, length);
        name[length] = 0;
        int next = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        close(directory);
        directory = next;
        path += length + (path[length] == '/');
    }
    if (directory < 0)
        fail(SYSTEM, "a directory: %s", strerror(errno));
    return directory;
}

/* Open the directory that a path is in, and point to its last name. */
static int open_parent(char *path, const char **name)
{
    char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!slash)
        return open_directory("");
    *slash = 0;
    int directory = open_directory(path);
    *slash = '/';
    return directory;
}

static void write_all(int file, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t done = write(file, bytes, size);
        if (done < 0)
            fail(SYSTEM, "writing: %s", strerror(errno));
        bytes += done;
        size -= done;
    }
}

static void make_file(int directory, const char *name, Entry *entry)
{
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (file < 0)
        fail(SYSTEM, "a file: %s", strerror(errno));
    write_all(file, entry->content, entry->size);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = entry->time}};
    if (fchmod(file, entry->mode) < 0 || futimens(file, times) < 0 || close(file) < 0)
        fail(SYSTEM, "a file: %s", strerror(errno));
}

static void open_root_for_unpacking(const char *name)
{
    if (mkdir(name, 0777) < 0 && errno != EEXIST)
        fail(SYSTEM, "%s", strerror(errno));
    root = open(name, O_RDONLY | O_DIRECTORY);
    if (root < 0)
        fail(SYSTEM, "%s", strerror(errno));
    DIR *listing = must(fdopendir(dup(root)));
    for (struct dirent *each; (each = readdir(listing));)
        if (strcmp(each->d_name, ".") != 0 && strcmp(each->d_name, "..") != 0)
            fail(SYSTEM, "the directory is not empty");
    closedir(listing);
}

static void unpack(const char *name)
{
    open_root_for_unpacking(name);
    for (Entry *entry = entries; entry < entries + count; entry++) {
        const char *last;
        int directory = open_parent(entry->path, &last);
        if (entry->kind == 'F')
            make_file(directory, last, entry);
        else if (mkdirat(directory, last, 0700) < 0)
            fail(SYSTEM, "a directory: %s", strerror(errno));
        close(directory);
    }
    for (size_t i = count; i-- > 0;)
        if (entries[i].kind == 'D') {
            int directory = open_directory(entries[i].path);
            if (fchmod(directory, entries[i].mode) < 0)
                fail(SYSTEM, "a directory: %s", strerror(errno));
            close(directory);
        }
}

/* Packing. */

static uint8_t *packed;
static size_t packed_size, packed_room;

static void put_bytes(const void *bytes, size_t size)
{
    if (packed_size + size > packed_room) {
        packed_room = 2 * (packed_size + size);
        packed = must(realloc(packed, packed_room));
    }
    if (size)
        memcpy(packed + packed_size, bytes, size);
    packed_size += size;
}

static void put_byte(uint8_t byte)
{
    put_bytes(&byte, 1);
}

static void put_number(uint64_t value)
{
    for (; value > 127; value >>= 7)
        put_byte(value | 128);
    put_byte(value);
}

static void put_crc(uint32_t crc)
{
    for (int i = 0; i < 4; i++, crc >>= 8)
        put_byte(crc);
}

static void pack_file(int directory, const char *name, Entry *entry)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW);
    if (file < 0)
        fail(SYSTEM, "a file: %s", strerror(errno));
    size_t size;
    entry->content = read_all(file, &size);
    entry->size = size;
    close(file);
}

/* Return the path of what is a directory itself. */
static const char *collect_one(int directory, const char *path, const char *name)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        fail(SYSTEM, "%s", strerror(errno));
    size_t length = strlen(path) + (*path != 0) + strlen(name);
    if (length > LONGEST_PATH)
        fail(SYSTEM, "a path is too long");
    char *whole = must(malloc(length + 1));
    char *end = stpcpy(whole, path);
    if (*path)
        *end++ = '/';
    strcpy(end, name);
    Entry *entry = add_entry();
    entry->path = whole;
    entry->mode = status.st_mode & 0777;
    entry->time = status.st_mtime < 0 ? 0 : status.st_mtime;
    if (S_ISREG(status.st_mode)) {
        entry->kind = 'F';
        pack_file(directory, name, entry);
    } else if (S_ISDIR(status.st_mode)) {
        entry->kind = 'D';
        return whole;
    } else
        fail(SYSTEM, "something is neither a file nor a directory");
    return NULL;
}

static void collect(const char *path)
{
    /* The names first: a deep tree would need too many open directories otherwise. */
    int directory = open_directory(path);
    DIR *listing = must(fdopendir(dup(directory)));
    char **names = NULL;
    size_t number = 0;
    errno = 0;
    for (struct dirent *each; (each = readdir(listing));) {
        if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0)
            continue;
        names = must(realloc(names, (number + 1) * sizeof *names));
        names[number++] = must(strdup(each->d_name));
    }
    if (errno)
        fail(SYSTEM, "a directory: %s", strerror(errno));
    closedir(listing);
    close(directory);
    for (size_t i = 0; i < number; i++) {
        directory = open_directory(path);
        const char *below = collect_one(directory, path, names[i]);
        close(directory);
        if (below)
            collect(below);
        free(names[i]);
    }
    free(names);
}

static int by_path(const void *one, const void *other)
{
    return strcmp(((const Entry *)one)->path, ((const Entry *)other)->path);
}

static void put_path(const char *path)
{
    put_number(strlen(path));
    put_bytes(path, strlen(path));
}

static void put_entry(const Entry *entry)
{
    put_byte(entry->kind);
    put_path(entry->path);
    put_number(entry->mode);
    if (entry->kind != 'F')
        return;
    put_number(entry->time);
    put_number(entry->size);
    put_bytes(entry->content, entry->size);
    put_crc(crc32_of(entry->content, entry->size));
}

static void write_archive(const char *name)
{
    char *temporary = must(malloc(strlen(name) + 8));
    sprintf(temporary, "%s.XXXXXX", name);
    int file = mkstemp(temporary);
    if (file < 0)
        fail(SYSTEM, "%s", strerror(errno));
    unfinished = temporary;
    write_all(file, packed, packed_size);
    mode_t mask = umask(0);
    if (fchmod(file, 0666 & ~mask) < 0 || close(file) < 0 || rename(temporary, name) < 0)
        fail(SYSTEM, "%s", strerror(errno));
}

static void pack(const char *name, const char *tree)
{
    root = open(tree, O_RDONLY | O_DIRECTORY);
    if (root < 0)
        fail(SYSTEM, "%s", strerror(errno));
    collect("");
    qsort(entries, count, sizeof *entries, by_path);
    put_bytes("CRATE", 5);
    put_byte(EDITION);
    for (size_t i = 0; i < count; i++)
        put_entry(&entries[i]);
    put_byte('E');
    put_number(count);
    write_archive(name);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        pack(argv[2], argv[3]);
    else if (argc == 3 && strcmp(argv[1], "list") == 0) {
        read_archive(argv[2]);
        list();
    } else if (argc == 4 && strcmp(argv[1], "unpack") == 0) {
        read_archive(argv[2]);
        unpack(argv[3]);
    } else
        fail(USAGE, "crate pack ARCHIVE DIR | list ARCHIVE | unpack ARCHIVE DIR");
    return fflush(stdout) == 0 ? 0 : SYSTEM;
}
