/* F and R over columns, natively: the same steps as batch/read_f.py and batch/read_r.py, one after the other.

   Nothing here is known to the caller but two functions, at the end. Whatever a column holds, no index leaves its
   array: each is checked before it is used, and a column set that is out of bounds is refused as a whole (-1). */

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { MAX_OPTIONS = 256, MAX_BITS = 512, SYMBOLS = 256, BLOCK = 64, BLOCKS = 9 };
#define TOTAL_WEIGHT ((int64_t)1 << 32)

/* Steps of one payload length. Steps are rows of `key` to `position`; lists are runs of `weight` and `name`. */
typedef struct {
    int64_t count, key_count, entry_count, name_count, payload_len;
    const uint8_t *secrets;      /* 32 bytes a key */
    const int32_t *key;
    const uint8_t *context;      /* 32 bytes a step */
    const int64_t *list_start, *options, *position;
    const int64_t *weight;
    const int32_t *name;
    const int64_t *name_start;   /* one more than there are names */
    const uint8_t *name_bytes;
} Steps;

/* Tables of the races: products and inverses in GF(2^8), and for each bucket of ratios of weights the places beyond
   which a rival surely rings first, and from which on it may. */
typedef struct {
    const uint8_t *products, *inverses, *open_to, *unsure_from;
    int64_t bucket_count, ratios_per_e;
    double near_gap;
} Races;

/* BLAKE2b (RFC 7693), keyed with 32 bytes ------------------------------------------------------------------------- */

static const uint64_t IV[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                               0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

#define ROTATE(x, n) ((x) >> (n) | (x) << (64 - (n)))
#define G(a, b, c, d, x, y)                                                                                             \
    a += b + (x), d = ROTATE(d ^ a, 32), c += d, b = ROTATE(b ^ c, 24);                                                 \
    a += b + (y), d = ROTATE(d ^ a, 16), c += d, b = ROTATE(b ^ c, 63);
#define ROUND(s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, sa, sb, sc, sd, se, sf)                                           \
    G(v0, v4, v8, vc, m[s0], m[s1]) G(v1, v5, v9, vd, m[s2], m[s3]) G(v2, v6, va, ve, m[s4], m[s5])                     \
    G(v3, v7, vb, vf, m[s6], m[s7]) G(v0, v5, va, vf, m[s8], m[s9]) G(v1, v6, vb, vc, m[sa], m[sb])                     \
    G(v2, v7, v8, vd, m[sc], m[sd]) G(v3, v4, v9, ve, m[se], m[sf])

static uint64_t little(const uint8_t *at) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) word = word << 8 | at[i];
    return word;
}

static uint64_t big(const uint8_t *at) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) word = word << 8 | at[i];
    return word;
}

static void compress(uint64_t h[8], const uint8_t block[128], uint64_t taken, int is_last) {
    uint64_t m[16];
    for (int i = 0; i < 16; i++) m[i] = little(block + 8 * i);
    uint64_t v0 = h[0], v1 = h[1], v2 = h[2], v3 = h[3], v4 = h[4], v5 = h[5], v6 = h[6], v7 = h[7];
    uint64_t v8 = IV[0], v9 = IV[1], va = IV[2], vb = IV[3];
    uint64_t vc = IV[4] ^ taken, vd = IV[5], ve = is_last ? ~IV[6] : IV[6], vf = IV[7];
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    ROUND(11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4)
    ROUND(7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8)
    ROUND(9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13)
    ROUND(2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9)
    ROUND(12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11)
    ROUND(13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10)
    ROUND(6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5)
    ROUND(10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0)
    ROUND(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    ROUND(14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3)
    h[0] ^= v0 ^ v8, h[1] ^= v1 ^ v9, h[2] ^= v2 ^ va, h[3] ^= v3 ^ vb;
    h[4] ^= v4 ^ vc, h[5] ^= v5 ^ vd, h[6] ^= v6 ^ ve, h[7] ^= v7 ^ vf;
}

/* The state after the block that holds the key: all that is the same for every message under it. */
static void absorb_key(uint64_t h[8], const uint8_t key[32], int digest_size) {
    uint8_t block[128] = {0};
    memcpy(block, key, 32);
    memcpy(h, IV, sizeof IV);
    h[0] ^= 0x01010000 ^ (32 << 8) ^ (uint64_t)digest_size;
    compress(h, block, 128, 0);
}

/* The digest of label, a zero byte and data, under a key that was absorbed. */
static void digest(const uint64_t keyed[8], const char *label, const uint8_t *data, int64_t size, uint8_t out[BLOCK]) {
    uint64_t h[8], taken = 128;
    uint8_t block[128] = {0};
    int64_t filled = (int64_t)strlen(label) + 1;
    memcpy(h, keyed, sizeof h);
    memcpy(block, label, (size_t)filled);
    while (filled + size > 128) {
        memcpy(block + filled, data, (size_t)(128 - filled));
        data += 128 - filled, size -= 128 - filled, filled = 0, taken += 128;
        compress(h, block, taken, 0);
        memset(block, 0, sizeof block);
    }
    if (size > 0) memcpy(block + filled, data, (size_t)size);
    compress(h, block, taken + (uint64_t)(filled + size), 1);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) out[8 * i + j] = (uint8_t)(h[i] >> 8 * j);
}

/* Steps ------------------------------------------------------------------------------------------------------------ */

static int in_bounds(const Steps *steps, int64_t i) {
    int64_t start = steps->list_start[i], options = steps->options[i];
    if (steps->key[i] < 0 || steps->key[i] >= steps->key_count) return 0;
    if (options < 1 || options > MAX_OPTIONS || start < 0 || start > steps->entry_count - options) return 0;
    for (int64_t j = start; j < start + options; j++)
        if (steps->weight[j] < 1 || steps->weight[j] > TOTAL_WEIGHT) return 0;
    return steps->position[i] >= 0;
}

static void step_key(const Steps *steps, int64_t i, uint64_t (*keyed)[8], uint8_t out[BLOCK]) {
    uint8_t message[36] = {0, 0, (uint8_t)(steps->payload_len >> 8), (uint8_t)steps->payload_len};
    memcpy(message + 4, steps->context + 32 * i, 32);
    digest(keyed[steps->key[i]], "agentmark/1 step key", message, sizeof message, out);
}

/* Blocks of a step's bits, from the first one that is asked for, as far as so many bits need. */
static void step_bits(const uint64_t keyed[8], const char *label, int first, int64_t bits, uint8_t *stream) {
    for (int block = first; block * 8 * BLOCK < bits; block++) {
        uint8_t number[4] = {0, 0, 0, (uint8_t)block};
        digest(keyed, label, number, sizeof number, stream + block * BLOCK);
    }
}

/* Bits of a stream, at most 64, as a number. Eight bytes behind the last are read. */
static uint64_t run(const uint8_t *stream, int64_t at, int64_t count) {
    const uint8_t *byte = stream + (at >> 3);
    int shift = (int)(at & 7);
    uint64_t word = big(byte);
    if (shift) word = word << shift | byte[8] >> (8 - shift);
    return word >> (64 - count);
}

/* Rows of the code, each as words of which the first is the least significant; the end of what was written. */
static uint64_t *code_rows(const uint8_t *stream, int64_t at, int64_t payload_len, int count, uint64_t *rows) {
    int64_t words = (payload_len + 63) / 64;
    for (int row = 0; row < count; row++, rows += words)
        for (int64_t word = words - 1; word >= 0; word--) {
            int64_t bits = word == words - 1 ? payload_len - 64 * word : 64;
            rows[word] = run(stream, at, bits);
            at += bits;
        }
    return rows;
}

/* Every key's state before its contexts; at most `key_count` of them fit. */
static int prepare(const Steps *steps, uint64_t (*keyed)[8]) {
    if (steps->payload_len < 0 || steps->payload_len > MAX_BITS) return -1;
    for (int64_t k = 0; k < steps->key_count; k++) absorb_key(keyed[k], steps->secrets + 32 * k, 32);
    return 0;
}

/* F: for each step whether the key can have chosen so, the number of rows and the symbol; the rows of all. `keyed` has
   room for a state of each key, `rows` for `room` words. Returns the number of words, or -1. */
EXPORT int64_t agentmark_read_f(const Steps *steps, uint64_t (*keyed)[8], uint8_t *possible, uint8_t *width,
                                uint16_t *symbol, uint64_t *rows, int64_t room) {
    uint64_t *end = rows;
    if (prepare(steps, keyed)) return -1;
    for (int64_t i = 0; i < steps->count; i++) {
        if (!in_bounds(steps, i)) return -1;
        uint8_t key[BLOCK], stream[BLOCKS * BLOCK + 8] = {0};
        uint64_t state[8];
        step_key(steps, i, keyed, key);
        absorb_key(state, key, BLOCK);
        step_bits(state, "agentmark/1 F step", 0, 1, stream);
        const int64_t *weight = steps->weight + steps->list_start[i];
        int64_t options = steps->options[i], size = 1, height = 0, offset = (int64_t)run(stream, 0, 32);
        for (; size <= options; size++) {
            height = weight[size - 1] - (size < options ? weight[size] : 0);
            if (offset < size * height) break;
            offset -= size * height;
        }
        if (size > options) return -1;
        possible[i] = steps->position[i] < size, width[i] = 0, symbol[i] = 0;
        if (!possible[i]) continue;
        int64_t index = (steps->position[i] - offset / height + size) % size, length = 0;
        while (size >> (length + 1)) length++;
        int64_t short_count = ((int64_t)2 << length) - size;
        if (index >= short_count) index += short_count, length++;
        if (length == 0) continue;
        if (end + length * ((steps->payload_len + 63) / 64) > rows + room) return -1;
        step_bits(state, "agentmark/1 F step", 1, 48 + length * steps->payload_len, stream);
        width[i] = (uint8_t)length;
        symbol[i] = (uint16_t)((uint64_t)index ^ run(stream, 32, length));
        end = code_rows(stream, 48, steps->payload_len, (int)length, end);
    }
    return end - rows;
}

/* Where a clock's u lies within its place of 256, and what a symbol is multiplied by (spec, section 7). */
static double below_of(uint64_t draw) { return (double)((draw >> 11 & (((uint64_t)1 << 45) - 1)) | 1) * 0x1p-53; }
static int factor_of(uint64_t draw) { return draw & 0xff ? (int)(draw & 0xff) : 1; }

/* The places of the choice's own u at which it rings before all rivals; 0 if there are none, or -1. */
static int race(const Steps *steps, const Races *races, int64_t i, const uint64_t state[8], uint8_t *alive, uint64_t *own,
                uint8_t *near) {
    uint64_t draw[MAX_OPTIONS];
    double clocks[SYMBOLS];
    int64_t start = steps->list_start[i], options = steps->options[i], position = steps->position[i];
    memset(alive, position < options, SYMBOLS);
    if (position >= options) return 0;
    for (int64_t j = 0; j < options; j++) {
        int64_t code = steps->name[start + j], from, to;
        if (code < 0 || code >= steps->name_count) return -1;
        from = steps->name_start[code], to = steps->name_start[code + 1];
        uint8_t out[BLOCK];
        digest(state, "agentmark/1 R clock", steps->name_bytes + from, to - from, out);
        draw[j] = big(out);
    }
    *own = draw[position];
    double own_weight = (double)steps->weight[start + position];
    double own_below = below_of(*own);
    uint8_t inverse = races->inverses[factor_of(*own)];
    for (int place = 0; place < SYMBOLS; place++) clocks[place] = -1;
    for (int64_t j = 0; j < options; j++) {
        if (j == position) continue;
        double weight = (double)steps->weight[start + j];
        double below = below_of(draw[j]);
        uint8_t factor = races->products[256 * inverse + factor_of(draw[j])];
        const uint8_t *products = races->products + 256 * factor;
        uint8_t offset = (uint8_t)(draw[j] >> 56 ^ products[*own >> 56]), any = 0, unsure[SYMBOLS];
        int64_t bucket = (int64_t)floor(log(weight / own_weight) * (double)races->ratios_per_e) + races->bucket_count / 2;
        if (bucket < 0 || bucket >= races->bucket_count) return -1;
        const uint8_t *open_to = races->open_to + 256 * bucket, *unsure_from = races->unsure_from + 256 * bucket;
        for (int place = 0; place < SYMBOLS; place++) {
            uint8_t rival = products[place] ^ offset;
            alive[place] &= rival <= open_to[place];
            unsure[place] = alive[place] & (rival >= unsure_from[place]);
            any |= alive[place];
        }
        if (!any) return 0;
        for (int place = 0; place < SYMBOLS; place++) {
            if (place % 8 == 0 && little(unsure + place) == 0) place += 7;
            else if (unsure[place]) {
                double clock = -log((products[place] ^ offset) * 0x1p-8 + below) / weight;
                if (clocks[place] < 0) clocks[place] = -log(place * 0x1p-8 + own_below) / own_weight;
                if (fabs(clocks[place] - clock) <= clock * races->near_gap) *near = 1;
                if (clocks[place] >= clock) alive[place] = 0;
            }
        }
    }
    return 1;
}

/* R: for each step whether there are symbols under which the choice wins, and whether that is too near a tie to be told
   here; of those where there are, the symbols (four words), the pad and eight rows. Returns their number, or -1. */
EXPORT int64_t agentmark_read_r(const Steps *steps, const Races *races, uint64_t (*keyed)[8], uint8_t *possible,
                                uint8_t *near, uint64_t *symbols, uint8_t *pad, uint64_t *rows) {
    int64_t used = 0;
    if (prepare(steps, keyed)) return -1;
    for (int64_t i = 0; i < steps->count; i++) {
        if (!in_bounds(steps, i)) return -1;
        uint8_t key[BLOCK], alive[SYMBOLS], stream[BLOCKS * BLOCK + 8] = {0};
        uint64_t state[8], own = 0, set[4] = {0};
        step_key(steps, i, keyed, key);
        absorb_key(state, key, 8);
        near[i] = possible[i] = 0;
        int raced = race(steps, races, i, state, alive, &own, near + i);
        if (raced < 0) return -1;
        const uint8_t *products = races->products + 256 * factor_of(own);
        for (int s = 0; raced && s < SYMBOLS; s++)
            set[s >> 6] |= (uint64_t)alive[products[s] ^ (uint8_t)(own >> 56)] << (s & 63);
        if (near[i] || !(set[0] | set[1] | set[2] | set[3])) continue;
        possible[i] = 1;
        absorb_key(state, key, BLOCK);
        step_bits(state, "agentmark/1 R step", 0, 8 + 8 * steps->payload_len, stream);
        memcpy(symbols + 4 * used, set, sizeof set);
        pad[used++] = stream[0];
        rows = code_rows(stream, 8, steps->payload_len, 8, rows);
    }
    return used;
}
