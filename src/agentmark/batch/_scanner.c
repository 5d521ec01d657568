/* Lines of records into columns, natively: those lines that are just as `StepRecord.to_json` writes them.

   It decides nothing about any other line: one with other members, spaces, escapes or numbers that are out of bounds is
   passed over, and the caller reads it by other means. What it takes still has to be held against the laws of a list. */

#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

/* Texts that were found, each once: where they stand, and in `slots` (a power of two) where to look for them. */
typedef struct {
    int32_t *slots;              /* a text's number, or -1 */
    int64_t *start, *length;
    int64_t slot_count, room, count;
} Table;

/* What is written: a number a line that was taken, and a number an entry of a list. */
typedef struct {
    uint8_t *scheme, *marked, *listed, *context;
    int8_t *enforced;
    int32_t *payload_len, *session, *key_id, *choice;
    int64_t *step, *entries, *reason_length;
    int32_t *name;
    int64_t *weight, entry_room, entry_count;
    int64_t *seen;               /* of each name, the line in which it was last listed; room as in its table */
} Columns;

typedef struct {
    const uint8_t *text, *at, *end;
} Cursor;

/* How far a text may be from where it is looked for first. Who writes a log chooses its texts, and could choose some
   that all belong in one place. */
enum { MOST_PROBES = 64, DIGEST = 32 };

static int literal(Cursor *in, const char *expected) {
    size_t size = strlen(expected);
    if ((size_t)(in->end - in->at) < size || memcmp(in->at, expected, size)) return 0;
    in->at += size;
    return 1;
}

/* A whole number without a sign or a leading zero, up to `most`. */
static int number(Cursor *in, int64_t most, int64_t *found) {
    const uint8_t *begin = in->at;
    int64_t value = 0;
    for (; in->at < in->end && *in->at >= '0' && *in->at <= '9' && in->at - begin < 17; in->at++)
        value = 10 * value + (*in->at - '0');
    *found = value;
    return in->at > begin && value <= most && (*begin != '0' || in->at - begin == 1);
}

/* A text that is not empty, its first quote behind us: no escapes, no signs below a space. Its length, or 0. */
static int64_t plain_text(Cursor *in, uint64_t *hash, uint8_t *all) {
    const uint8_t *begin = in->at;
    for (*hash = 0xcbf29ce484222325, *all = 0; in->at < in->end && *in->at != '"'; in->at++) {
        if (*in->at < ' ' || *in->at == '\\') return 0;
        *hash = (*hash ^ *in->at) * 0x100000001b3, *all |= *in->at;
    }
    int64_t length = in->at - begin;
    return in->at < in->end && in->at++ ? length : 0;
}

/* The number of a text in its table, where it is put if it is new; -1 if it is none, or the table has no place. */
static int32_t coded(Cursor *in, Table *table) {
    uint64_t hash;
    uint8_t all;
    const uint8_t *begin = in->at;
    int64_t length = plain_text(in, &hash, &all);
    if (length == 0) return -1;
    hash ^= hash >> 32;
    for (int probe = 0; probe < MOST_PROBES; probe++) {
        int32_t *slot = table->slots + ((hash + (uint64_t)probe) & (uint64_t)(table->slot_count - 1));
        if (*slot < 0) {
            if (table->count >= table->room) return -1;
            table->start[table->count] = begin - in->text, table->length[table->count] = length;
            return *slot = (int32_t)table->count++;
        }
        if (table->length[*slot] == length && !memcmp(in->text + table->start[*slot], begin, (size_t)length)) return *slot;
    }
    return -1;
}

/* 64 lower-case hexadecimal digits and the quote behind them. */
static int digest(Cursor *in, uint8_t *bytes) {
    if (in->end - in->at < 2 * DIGEST + 1 || in->at[2 * DIGEST] != '"') return 0;
    for (int i = 0; i < 2 * DIGEST; i++) {
        uint8_t c = in->at[i], value = (uint8_t)(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16);
        if (value == 16) return 0;
        bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] | value : value << 4);
    }
    in->at += 2 * DIGEST + 1;
    return 1;
}

/* The members of a list, behind its brace; no name twice. */
static int list(Cursor *in, Columns *out, Table *names, int64_t line) {
    do {
        if (out->entry_count >= out->entry_room || !literal(in, "\"")) return 0;
        int32_t name = coded(in, names);
        if (name < 0 || out->seen[name] == line || !literal(in, ":")) return 0;
        out->seen[name] = line, out->name[out->entry_count] = name;
        if (!number(in, (int64_t)1 << 32, out->weight + out->entry_count)) return 0;
        out->entry_count++;
    } while (literal(in, ","));
    return literal(in, "}");
}

/* One line, as row `row`. What it has written is forgotten if it is not taken. */
static int record(Cursor *in, Columns *out, Table *sessions, Table *key_ids, Table *names, int64_t row, int64_t line) {
    int64_t payload_len, first = out->entry_count;
    uint8_t link[DIGEST], all = 0;
    uint64_t hash;
    if (!literal(in, "{\"agentmark\":1,\"scheme\":\"")) return 0;
    out->scheme[row] = (uint8_t)literal(in, "R");
    if (!(out->scheme[row] || literal(in, "F")) || !literal(in, "\",\"key_id\":\"")) return 0;
    if ((out->key_id[row] = coded(in, key_ids)) < 0 || !literal(in, ",\"payload_len\":")) return 0;
    if (!number(in, 4096, &payload_len) || !literal(in, ",\"session\":\"")) return 0;
    out->payload_len[row] = (int32_t)payload_len;
    if ((out->session[row] = coded(in, sessions)) < 0 || !literal(in, ",\"step\":")) return 0;
    if (!number(in, ((int64_t)1 << 53) - 1, out->step + row) || !literal(in, ",\"context\":\"")) return 0;
    if (!digest(in, out->context + DIGEST * row) || !literal(in, ",\"weights\":")) return 0;
    out->listed[row] = (uint8_t)literal(in, "{");
    if (!(out->listed[row] ? list(in, out, names, line) : literal(in, "null"))) return 0;
    out->entries[row] = out->entry_count - first;
    if (!literal(in, ",\"choice\":\"") || (out->choice[row] = coded(in, names)) < 0) return 0;
    out->marked[row] = (uint8_t)literal(in, ",\"marked\":true");
    if (!out->marked[row] && !literal(in, ",\"marked\":false")) return 0;
    out->reason_length[row] = 0;
    if (literal(in, ",\"reason\":\"")) {
        out->reason_length[row] = plain_text(in, &hash, &all);
        /* Whether other signs are well-formed is not for us to say. */
        if (out->reason_length[row] == 0 || all > 0x7f) return 0;
    }
    if (!out->marked[row] && out->reason_length[row] == 0) return 0;
    out->enforced[row] = literal(in, ",\"enforced\":true") ? 1 : literal(in, ",\"enforced\":false") ? 0 : -1;
    if (literal(in, ",\"prev\":\"") && !digest(in, link)) return 0;
    return literal(in, "}") && in->at == in->end;
}

/* The lines of a text: `starts` and `ends` are within it. Which were taken, and how many. */
EXPORT int64_t agentmark_scan(const uint8_t *text, const int64_t *starts, const int64_t *ends, int64_t count,
                              Columns *out, Table *sessions, Table *key_ids, Table *names, uint8_t *taken) {
    int64_t row = 0;
    for (int64_t line = 0; line < count; line++) {
        Cursor in = {text, text + starts[line], text + ends[line]};
        int64_t entries = out->entry_count;
        taken[line] = (uint8_t)record(&in, out, sessions, key_ids, names, row, line);
        if (taken[line]) row++;
        else out->entry_count = entries;
    }
    return row;
}
