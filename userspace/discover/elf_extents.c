/* Function extents from .eh_frame, by way of the sorted table in .eh_frame_hdr.
 *
 * Formats: LSB Core "Exception Frames"; DWARF pointer encodings DW_EH_PE_*.
 */
#include <stdlib.h>
#include <string.h>

#include "userspace/discover/elf_private.h"

#define ENCODING_FORMAT 0x0f
#define ENCODING_ABSOLUTE 0x00
#define ENCODING_UDATA4 0x03
#define ENCODING_SDATA4 0x0b
#define ENCODING_DATAREL_SDATA4 0x3b

/* Each FDE of a hostile file may have a CIE of its own, so none is read at any length. */
#define LEB128_BYTES_MAX 10
#define AUGMENTATION_BYTES_MAX 16

/* Bytes of a pointer in this encoding; 0 for LEB128 and what is not used in FDEs. */
static size_t encoded_bytes(uint8_t encoding)
{
	switch (encoding & ENCODING_FORMAT) {
	case 0x00: /* absolute */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return 8;
	case 0x02:
	case 0x0a:
		return 2;
	case 0x03:
	case 0x0b:
		return 4;
	default:
		return 0;
	}
}

/* A bounded reader: every read fails once the bytes have run out. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static const uint8_t *take(struct reader *reader, size_t count)
{
	const uint8_t *bytes = reader->at;

	if (reader->failed || count > reader->left) {
		reader->failed = true;
		return NULL;
	}
	reader->at += count;
	reader->left -= count;
	return bytes;
}

static uint64_t take_number(struct reader *reader, size_t count)
{
	const uint8_t *bytes = take(reader, count);
	uint64_t value = 0;

	if (bytes && count <= sizeof(value))
		memcpy(&value, bytes, count);
	return value;
}

/* The value does not matter where this is used, only its length. */
static void skip_leb128(struct reader *reader)
{
	for (int i = 0; take_number(reader, 1) & 0x80 && !reader->failed; i++)
		reader->failed = i == LEB128_BYTES_MAX - 1;
}

/* The end of the augmentation that begins here, NULL when it is too far. */
static const uint8_t *find_end(const struct reader *reader)
{
	return memchr(reader->at, '\0',
		      reader->left < AUGMENTATION_BYTES_MAX ? reader->left : AUGMENTATION_BYTES_MAX);
}

static struct reader reader_at(const struct rls_elf *elf, uint64_t vaddr)
{
	size_t left = rls_elf_bytes_left(elf, vaddr);
	const uint8_t *bytes = left ? rls_elf_bytes(elf, vaddr, left) : NULL;

	return (struct reader){.at = bytes, .left = left, .failed = !bytes};
}

/* Record length; the reader is cut to the record and stands behind the length field. */
static void enter_record(struct reader *reader, size_t *header_bytes)
{
	uint64_t length = take_number(reader, 4);

	*header_bytes = 4;
	if (length == 0xffffffff) {
		length = take_number(reader, 8);
		*header_bytes = 12;
	}
	if (!length || length > reader->left)
		reader->failed = true;
	else
		reader->left = length;
}

/* The encoding that a CIE gives its FDEs' addresses. */
static bool read_cie_encoding(const struct rls_elf *elf, uint64_t vaddr, uint8_t *out)
{
	struct reader reader = reader_at(elf, vaddr);
	uint8_t version, encoding = ENCODING_ABSOLUTE;
	const char *augmentation;
	const uint8_t *end;
	size_t header_bytes;

	enter_record(&reader, &header_bytes);
	if (take_number(&reader, 4) != 0 || reader.failed)
		return false;
	version = take_number(&reader, 1);
	augmentation = (const char *)reader.at;
	end = reader.failed ? NULL : find_end(&reader);
	if (!end || (version != 1 && version != 3))
		return false;
	take(&reader, end - reader.at + 1);
	skip_leb128(&reader); /* code alignment */
	skip_leb128(&reader); /* data alignment */
	if (version == 1)
		take(&reader, 1);
	else
		skip_leb128(&reader); /* return address register */
	if (augmentation[0] == 'z')
		skip_leb128(&reader);
	for (const char *letter = augmentation; *letter; letter++) {
		if (*letter == 'R')
			encoding = take_number(&reader, 1);
		else if (*letter == 'L')
			take(&reader, 1);
		else if (*letter == 'P')
			take(&reader, encoded_bytes(take_number(&reader, 1)));
	}
	*out = encoding;
	return !reader.failed;
}

/* Almost all FDEs of a library share a few CIEs, in runs. */
struct cie_cache {
	uint64_t vaddr;
	uint8_t encoding;
	bool valid;
};

/* The length of code that the FDE at vaddr covers; 0 when it cannot be read. */
static uint64_t read_fde_range(const struct rls_elf *elf, uint64_t vaddr, struct cie_cache *cache)
{
	struct reader reader = reader_at(elf, vaddr);
	size_t header_bytes, pointer_bytes;
	uint64_t cie;
	uint32_t distance;

	enter_record(&reader, &header_bytes);
	distance = take_number(&reader, 4);
	if (reader.failed || !distance || distance > vaddr + header_bytes)
		return 0;
	cie = vaddr + header_bytes - distance;
	if (!cache->valid || cache->vaddr != cie) {
		cache->valid = read_cie_encoding(elf, cie, &cache->encoding);
		cache->vaddr = cie;
	}
	pointer_bytes = encoded_bytes(cache->encoding);
	if (!cache->valid || !pointer_bytes)
		return 0;
	take(&reader, pointer_bytes);
	return take_number(&reader, pointer_bytes);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct rls_elf_extent *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* Each byte is of the last extent that begins before it. So it is in real files, where none
 * overlap; in a hostile one the work on all extents would be the square of the file. */
static size_t make_disjoint(struct rls_elf_extent *extents, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct rls_elf_extent *last = kept ? &extents[kept - 1] : NULL;

		if (last && last->vaddr == extents[i].vaddr)
			continue;
		if (last && extents[i].vaddr - last->vaddr < last->size_bytes)
			last->size_bytes = extents[i].vaddr - last->vaddr;
		extents[kept++] = extents[i];
	}
	return kept;
}

/* The table of .eh_frame_hdr: (function, FDE) as signed distances from the header. */
static struct elf_table find_search_table(const struct rls_elf *elf)
{
	const struct elf_table none = {.entry_bytes = 8};
	const uint8_t *header = rls_elf_bytes(elf, elf->eh_frame_hdr, 12);
	uint32_t count;

	if (!elf->eh_frame_hdr || !header || header[0] != 1)
		return none;
	if ((header[1] & ENCODING_FORMAT) != ENCODING_SDATA4 || header[2] != ENCODING_UDATA4 ||
	    header[3] != ENCODING_DATAREL_SDATA4)
		return none;
	memcpy(&count, header + 8, sizeof(count));
	return elf_table_at(elf, elf->eh_frame_hdr + 12, 8ULL * count, 8);
}

static void read_extents(struct rls_elf *elf)
{
	struct elf_table table = find_search_table(elf);
	struct cie_cache cache = {0};
	bool sorted = true;
	size_t count = 0;

	if (!table.count)
		return;
	elf->extents = calloc(table.count, sizeof(*elf->extents));
	if (!elf->extents)
		return;
	for (size_t i = 0; i < table.count; i++) {
		int32_t entry[2];
		struct rls_elf_extent extent;

		elf_table_entry(&table, i, entry);
		extent.vaddr = elf->eh_frame_hdr + (int64_t)entry[0];
		extent.size_bytes =
			read_fde_range(elf, elf->eh_frame_hdr + (int64_t)entry[1], &cache);
		if (!extent.size_bytes || extent.size_bytes > rls_elf_bytes_left(elf, extent.vaddr))
			continue;
		if (count && extent.vaddr < elf->extents[count - 1].vaddr)
			sorted = false;
		elf->extents[count++] = extent;
	}
	if (!sorted)
		qsort(elf->extents, count, sizeof(*elf->extents), by_vaddr);
	elf->extent_count = make_disjoint(elf->extents, count);
}

size_t rls_elf_extents(struct rls_elf *elf, const struct rls_elf_extent **out)
{
	if (!elf->extents_read) {
		elf->extents_read = true;
		read_extents(elf);
	}
	*out = elf->extents;
	return elf->extent_count;
}

const struct rls_elf_extent *rls_elf_extent_at(struct rls_elf *elf, uint64_t vaddr)
{
	const struct rls_elf_extent *extents;
	size_t low = 0, high = rls_elf_extents(elf, &extents);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (extents[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || vaddr - extents[low - 1].vaddr >= extents[low - 1].size_bytes)
		return NULL;
	return &extents[low - 1];
}
