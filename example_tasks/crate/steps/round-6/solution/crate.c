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

#define EDITION 5
#define LONGEST_PATH 65535
#define LONGEST_NAME 255
#define LONGEST_TARGET 4095
#define LONGEST_CHUNK 65536
#define DEFAULT_LIMIT 1073741824

enum { SYSTEM = 1, USAGE = 2, DAMAGED = 3, LIMIT = 4, UNSAFE = 5 };

typedef struct {
    char kind; /* The letter; what is the same as another entry is F once that is known. */
    char *path;
    unsigned mode;
    int64_t seconds; /* Rounded down, and how many nanoseconds after. */
    long nanoseconds;
    uint64_t size;
    uint8_t *content; /* As it stands in the archive: in chunks from edition 3 on. */
    char *target;
    uint64_t same; /* The entry that has the content of an S. */
    size_t seen; /* By which search for it this entry was met. */
    int gone; /* A later entry has taken its place. */
} Entry;

static Entry *entries;
static size_t count, room;
static const char *unfinished; /* A file to remove when packing fails. */

static _Noreturn void fail(int status, const char *format, ...)
{
    static const char *const words[] = {"", "system", "usage", "damaged", "limit", "unsafe"};
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

/* Find the content of each entry that is the same as another. */
static void resolve_same(void)
{
    for (size_t i = 0; i < count; i++) {
        size_t last = i;
        while (entries[last].kind == 'S') {
            entries[last].seen = i + 1;
            last = entries[last].same;
            if (last >= count || (entries[last].kind != 'F' && entries[last].kind != 'S'))
                fail(DAMAGED, "an entry is the same as no file");
            if (entries[last].kind == 'S' && entries[last].seen == i + 1)
                fail(DAMAGED, "entries are the same as each other");
        }
        for (size_t each = i; entries[each].kind == 'S';) {
            size_t following = entries[each].same;
            entries[each].kind = 'F';
            entries[each].size = entries[last].size;
            entries[each].content = entries[last].content;
            each = following;
        }
    }
}

/* Take away what was below a directory. */
static void empty_directory(const char *path, size_t before)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < before; i++)
        if (strncmp(entries[i].path, path, length) == 0 && entries[i].path[length] == '/')
            entries[i].gone = 1;
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
            if (!parent || entries[parent - 1].gone || entries[parent - 1].kind != 'D')
                fail(DAMAGED, "an entry is in no directory");
        }
        size_t *slot = slot_of(path, strlen(path));
        if (*slot && !entries[*slot - 1].gone) {
            Entry *earlier = &entries[*slot - 1];
            earlier->gone = 1;
            if (earlier->kind == 'D' && entries[i].kind != 'D')
                empty_directory(path, i);
        }
        *slot = i + 1;
    }
}

/* Reading. */

static uint8_t *archive;
static size_t archive_size, at, entry_start;
static int edition;
static char **names; /* The table of names: of an archive, or of a tree that is packed. */
static size_t names_count;

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

/* Read a string that has no zero byte, and end it with one. */
static char *read_text(uint64_t longest)
{
    uint64_t length = read_number();
    if (length > longest)
        fail(DAMAGED, "a string is too long");
    const uint8_t *bytes = read_bytes(length);
    if (memchr(bytes, 0, length))
        fail(DAMAGED, "a string has a zero byte");
    char *text = must(malloc(length + 1));
    memcpy(text, bytes, length);
    text[length] = 0;
    return text;
}

static void read_names(void)
{
    uint64_t number = read_number();
    if (number > left())
        fail(DAMAGED, "it ends too early");
    names = must(malloc((number + 1) * sizeof *names));
    for (; names_count < number; names_count++) {
        char *name = names[names_count] = read_text(LONGEST_NAME);
        check_name((const uint8_t *)name, strlen(name));
        if (names_count > 0 && strcmp(names[names_count - 1], name) >= 0)
            fail(DAMAGED, "the names are not in order");
    }
}

/* Read a path as the names that it consists of. */
static char *read_indexes(void)
{
    uint64_t number = read_number();
    if (number < 1 || number > LONGEST_PATH)
        fail(DAMAGED, "a path has no names or too many");
    size_t size = 0, space = 256;
    char *path = must(malloc(space));
    for (; number > 0; number--) {
        uint64_t index = read_number();
        if (index >= names_count)
            fail(DAMAGED, "there is no such name");
        size_t length = strlen(names[index]);
        if (size + length > LONGEST_PATH)
            fail(DAMAGED, "a path is too long");
        if (size + length + 2 > space)
            path = must(realloc(path, space = 2 * (size + length + 2)));
        memcpy(path + size, names[index], length);
        size += length;
        path[size++] = number > 1 ? '/' : 0;
    }
    return path;
}

static char *read_path(void)
{
    if (edition >= 2)
        return read_indexes();
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

/* Check the checksum of some bytes, or from edition 2 on of all bytes of the entry. */
static void read_crc(const uint8_t *bytes, size_t size)
{
    if (edition >= 2) {
        bytes = archive + entry_start;
        size = at - entry_start;
    }
    const uint8_t *stored = read_bytes(4);
    uint32_t crc = stored[0] | stored[1] << 8 | stored[2] << 16 | (uint32_t)stored[3] << 24;
    if (crc != crc32_of(bytes, size))
        fail(DAMAGED, "a checksum is wrong");
}

/* Expand run-length coded bytes to exactly so many, and return whether that is what they are. */
static int expand(const uint8_t *from, size_t size, uint8_t *to, size_t length)
{
    while (size > 0) {
        size_t number = *from < 128 ? *from + 1u : *from - 125u, follow = *from < 128 ? number : 1;
        if (number > length || follow > size - 1)
            return 0;
        if (*from < 128)
            memcpy(to, from + 1, number);
        else
            memset(to, from[1], number);
        from += 1 + follow;
        size -= 1 + follow;
        to += number;
        length -= number;
    }
    return length == 0;
}

/* Read the next chunk of a file. Return its bytes, which are there until the next one is read, or NULL at the end. */
static const uint8_t *read_chunk(size_t *length)
{
    static uint8_t expanded[LONGEST_CHUNK];
    uint64_t number = read_number();
    if (number > LONGEST_CHUNK)
        fail(DAMAGED, "a chunk is too long");
    *length = number;
    if (number == 0)
        return NULL;
    uint8_t method = *read_bytes(1);
    if (method == 0)
        return read_bytes(number);
    if (method != 1)
        fail(DAMAGED, "a chunk has no method");
    uint64_t stored = read_number();
    if (!expand(read_bytes(stored), stored, expanded, number))
        fail(DAMAGED, "a chunk does not expand to its length");
    return expanded;
}

/* Read a time: seconds in editions 1 to 4, then nanoseconds of either sign. */
static void read_time(Entry *entry)
{
    uint64_t number = read_number();
    if (edition < 5) {
        entry->seconds = number;
        return;
    }
    int64_t time = number & 1 ? -(int64_t)(number / 2) - 1 : (int64_t)(number / 2);
    entry->seconds = time / 1000000000;
    entry->nanoseconds = time % 1000000000;
    if (entry->nanoseconds < 0) {
        entry->seconds--;
        entry->nanoseconds += 1000000000;
    }
}

static void read_file(Entry *entry)
{
    entry->mode = read_mode();
    read_time(entry);
    if (entry->kind == 'S')
        entry->same = read_number();
    else if (edition >= 3) {
        entry->content = archive + at;
        for (size_t length; read_chunk(&length);)
            entry->size += length;
    } else {
        entry->size = read_number();
        entry->content = read_bytes(entry->size);
    }
    read_crc(entry->content, entry->size);
}

static void read_link(Entry *entry)
{
    entry->target = read_text(LONGEST_TARGET);
    if (!*entry->target)
        fail(DAMAGED, "a link has no target");
    read_crc((uint8_t *)entry->target, strlen(entry->target));
}

static void read_entries(void)
{
    for (;;) {
        entry_start = at;
        char kind = *read_bytes(1);
        if (kind == 'E')
            break;
        if (kind != 'F' && kind != 'D' && !(kind == 'L' && edition >= 2) && !(kind == 'S' && edition >= 4))
            fail(DAMAGED, "an entry has no kind");
        Entry *entry = add_entry();
        entry->kind = kind;
        entry->path = read_path();
        if (kind == 'F' || kind == 'S')
            read_file(entry);
        else if (kind == 'L')
            read_link(entry);
        else {
            entry->mode = read_mode();
            if (edition >= 2)
                read_crc(NULL, 0);
        }
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
    edition = *read_bytes(1);
    if (edition < 1 || edition > EDITION)
        fail(DAMAGED, "it is of an edition that nobody knows");
    if (edition >= 2)
        read_names();
    read_entries();
    resolve_same();
    place_entries();
}

/* Refuse an archive that says it has more than so many bytes. */
static void check_limit(uint64_t limit)
{
    for (Entry *entry = entries; entry < entries + count; entry++)
        if (!entry->gone) {
            if (entry->size > limit)
                fail(LIMIT, "its files have more bytes than they may");
            limit -= entry->size;
        }
}

/* Say whether a link leads out of the directory that is unpacked into. */
static int leads_out(const Entry *entry)
{
    size_t depth = 0;
    for (const char *byte = entry->path; *byte; byte++)
        depth += *byte == '/';
    const char *target = entry->target;
    if (*target == '/')
        return 1;
    while (*target) {
        size_t length = strcspn(target, "/");
        if (length == 2 && target[0] == '.' && target[1] == '.') {
            if (depth-- == 0)
                return 1;
        } else if (length > 0 && !(length == 1 && target[0] == '.'))
            depth++;
        target += length + (target[length] == '/');
    }
    return 0;
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

/* Print a time as a decimal number of seconds, whose sign is that of all of it. */
static void print_time(const Entry *entry)
{
    long long seconds = entry->seconds;
    long nanoseconds = entry->nanoseconds;
    if (seconds < 0 && nanoseconds > 0) {
        seconds++;
        nanoseconds = 1000000000 - nanoseconds;
    }
    printf("%s%lld.%09ld ", entry->seconds < 0 ? "-" : "", seconds < 0 ? -seconds : seconds, nanoseconds);
}

static void list(void)
{
    for (Entry *entry = entries; entry < entries + count; entry++) {
        if (entry->gone)
            continue;
        if (entry->kind == 'D')
            printf("D %03o - - ", entry->mode);
        else if (entry->kind == 'L')
            printf("L - - - ");
        else {
            printf("F %03o %llu ", entry->mode, (unsigned long long)entry->size);
            print_time(entry);
        }
        print_escaped(entry->path);
        if (entry->kind == 'L') {
            printf(" -> ");
            print_escaped(entry->target);
        }
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
    if (edition >= 3) {
        const uint8_t *chunk;
        at = entry->content - archive;
        for (size_t length; (chunk = read_chunk(&length));)
            write_all(file, chunk, length);
    } else
        write_all(file, entry->content, entry->size);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = entry->seconds, .tv_nsec = entry->nanoseconds}};
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

static int by_path(const void *one, const void *other)
{
    return strcmp(((const Entry *)one)->path, ((const Entry *)other)->path);
}

static void unpack(const char *name)
{
    /* A directory that occurs twice may come behind what is in it. */
    qsort(entries, count, sizeof *entries, by_path);
    for (Entry *entry = entries; entry < entries + count; entry++)
        if (entry->kind == 'L' && !entry->gone && leads_out(entry))
            fail(UNSAFE, "a link leads out of the directory");
    open_root_for_unpacking(name);
    for (Entry *entry = entries; entry < entries + count; entry++) {
        const char *last;
        if (entry->gone)
            continue;
        int directory = open_parent(entry->path, &last);
        if (entry->kind == 'F')
            make_file(directory, last, entry);
        else if (entry->kind == 'L') {
            if (symlinkat(entry->target, directory, last) < 0)
                fail(SYSTEM, "a link: %s", strerror(errno));
        } else if (mkdirat(directory, last, 0700) < 0)
            fail(SYSTEM, "a directory: %s", strerror(errno));
        close(directory);
    }
    for (size_t i = count; i-- > 0;)
        if (entries[i].kind == 'D' && !entries[i].gone) {
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

static void pack_link(int directory, const char *name, Entry *entry)
{
    entry->target = must(malloc(LONGEST_TARGET + 2));
    ssize_t size = readlinkat(directory, name, entry->target, LONGEST_TARGET + 1);
    if (size < 0 || size > LONGEST_TARGET)
        fail(SYSTEM, "a link: %s", size < 0 ? strerror(errno) : "its target is too long");
    entry->target[size] = 0;
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
    entry->seconds = status.st_mtim.tv_sec;
    entry->nanoseconds = status.st_mtim.tv_nsec;
    if (S_ISREG(status.st_mode)) {
        entry->kind = 'F';
        pack_file(directory, name, entry);
    } else if (S_ISDIR(status.st_mode)) {
        entry->kind = 'D';
        return whole;
    } else if (S_ISLNK(status.st_mode)) {
        entry->kind = 'L';
        pack_link(directory, name, entry);
    } else
        fail(SYSTEM, "something is neither a file nor a directory nor a link");
    return NULL;
}

static void collect(const char *path)
{
    /* The names first: a deep tree would need too many open directories otherwise. */
    int directory = open_directory(path);
    DIR *listing = must(fdopendir(dup(directory)));
    char **found = NULL;
    size_t number = 0;
    errno = 0;
    for (struct dirent *each; (each = readdir(listing));) {
        if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0)
            continue;
        found = must(realloc(found, (number + 1) * sizeof *found));
        found[number++] = must(strdup(each->d_name));
    }
    if (errno)
        fail(SYSTEM, "a directory: %s", strerror(errno));
    closedir(listing);
    close(directory);
    for (size_t i = 0; i < number; i++) {
        directory = open_directory(path);
        const char *below = collect_one(directory, path, found[i]);
        close(directory);
        if (below)
            collect(below);
        free(found[i]);
    }
    free(found);
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Write the table of names: the last name of each path is every name that there is. */
static void put_names(void)
{
    names = must(malloc((count + 1) * sizeof *names));
    for (size_t i = 0; i < count; i++) {
        char *slash = strrchr(entries[i].path, '/');
        names[i] = slash ? slash + 1 : entries[i].path;
    }
    qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(names[names_count - 1], names[i]) != 0)
            names[names_count++] = names[i];
    put_number(names_count);
    for (size_t i = 0; i < names_count; i++) {
        put_number(strlen(names[i]));
        put_bytes(names[i], strlen(names[i]));
    }
}

static void put_path(const char *path)
{
    size_t number = 1;
    for (const char *byte = path; *byte; byte++)
        number += *byte == '/';
    put_number(number);
    for (; number > 0; number--) {
        char name[LONGEST_NAME + 1], *key = name;
        size_t length = strcspn(path, "/");
        memcpy(name, path, length);
        name[length] = 0;
        put_number((char **)bsearch(&key, names, names_count, sizeof *names, by_name) - names);
        path += length + 1;
    }
}

/* How many bytes are equal to the first one. */
static size_t run_length(const uint8_t *bytes, size_t size)
{
    size_t length = 1;
    while (length < size && length < 130 && bytes[length] == bytes[0])
        length++;
    return length;
}

/* Code runs, and return how many bytes that takes: at most 129 for 128. */
static size_t compress(const uint8_t *bytes, size_t size, uint8_t *to)
{
    size_t done = 0, written = 0;
    while (done < size) {
        size_t run = run_length(bytes + done, size - done);
        if (run >= 3) {
            to[written++] = run + 125;
            to[written++] = bytes[done];
            done += run;
            continue;
        }
        size_t start = done;
        while (done < size && done - start < 128 && run_length(bytes + done, size - done) < 3)
            done++;
        to[written++] = done - start - 1;
        memcpy(to + written, bytes + start, done - start);
        written += done - start;
    }
    return written;
}

static void put_chunks(const Entry *entry)
{
    static uint8_t coded[LONGEST_CHUNK * 2];
    for (size_t done = 0; done < entry->size;) {
        size_t length = entry->size - done < LONGEST_CHUNK ? entry->size - done : LONGEST_CHUNK;
        size_t stored = compress(entry->content + done, length, coded);
        put_number(length);
        put_byte(stored < length);
        if (stored < length) {
            put_number(stored);
            put_bytes(coded, stored);
        } else
            put_bytes(entry->content + done, length);
        done += length;
    }
    put_number(0);
}

/* Make entries of files whose content an earlier one has the same as that. */
static void find_same(void)
{
    size_t size = 64;
    while (size < 2 * count)
        size *= 2;
    size_t *firsts = must(calloc(size, sizeof *firsts));
    for (size_t i = 0; i < count; i++) {
        if (entries[i].kind != 'F' || entries[i].size == 0)
            continue;
        size_t slot = crc32_of(entries[i].content, entries[i].size) & (size - 1);
        for (; firsts[slot]; slot = (slot + 1) & (size - 1)) {
            Entry *first = &entries[firsts[slot] - 1];
            if (first->size == entries[i].size && memcmp(first->content, entries[i].content, first->size) == 0)
                break;
        }
        if (firsts[slot]) {
            entries[i].kind = 'S';
            entries[i].same = firsts[slot] - 1;
        } else
            firsts[slot] = i + 1;
    }
    free(firsts);
}

static void put_time(const Entry *entry)
{
    int64_t time;
    if (__builtin_mul_overflow(entry->seconds, 1000000000, &time)
        || __builtin_add_overflow(time, entry->nanoseconds, &time) || time < -(INT64_C(1) << 62) || time >> 62 > 0)
        fail(SYSTEM, "a time is too far away");
    put_number(time < 0 ? 2 * (uint64_t)-(time + 1) + 1 : 2 * (uint64_t)time);
}

static void put_entry(const Entry *entry)
{
    size_t start = packed_size;
    put_byte(entry->kind);
    put_path(entry->path);
    if (entry->kind == 'L') {
        size_t length = strlen(entry->target);
        put_number(length);
        put_bytes(entry->target, length);
    } else
        put_number(entry->mode);
    if (entry->kind == 'F') {
        put_time(entry);
        put_chunks(entry);
    } else if (entry->kind == 'S') {
        put_time(entry);
        put_number(entry->same);
    }
    put_crc(crc32_of(packed + start, packed_size - start));
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
    find_same();
    put_bytes("CRATE", 5);
    put_byte(EDITION);
    put_names();
    for (size_t i = 0; i < count; i++)
        put_entry(&entries[i]);
    put_byte('E');
    put_number(count);
    write_archive(name);
}

/* Take `--limit BYTES` from behind the command, if it is there. */
static uint64_t take_limit(int *argc, char **argv)
{
    if (*argc < 4 || strcmp(argv[2], "--limit") != 0)
        return DEFAULT_LIMIT;
    const char *text = argv[3];
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 18 || text[digits])
        fail(USAGE, "--limit takes a number of bytes");
    *argc -= 2;
    memmove(argv + 2, argv + 4, (*argc - 2) * sizeof *argv);
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    int packs = argc > 1 && strcmp(argv[1], "pack") == 0;
    uint64_t limit = packs ? 0 : take_limit(&argc, argv);
    if (argc == 4 && strcmp(argv[1], "pack") == 0)
        pack(argv[2], argv[3]);
    else if (argc == 3 && strcmp(argv[1], "list") == 0) {
        read_archive(argv[2]);
        check_limit(limit);
        list();
    } else if (argc == 4 && strcmp(argv[1], "unpack") == 0) {
        read_archive(argv[2]);
        check_limit(limit);
        unpack(argv[3]);
    } else
        fail(USAGE, "crate pack ARCHIVE DIR | list [--limit BYTES] ARCHIVE | unpack [--limit BYTES] ARCHIVE DIR");
    return fflush(stdout) == 0 ? 0 : SYSTEM;
}
