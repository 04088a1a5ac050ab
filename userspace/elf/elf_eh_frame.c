#include "userspace/elf/elf_eh_frame.h"

#include <string.h>

#define ENCODING_FORMAT 0x0f
#define ENCODING_ABSOLUTE 0x00
#define ENCODING_UDATA4 0x03
#define ENCODING_SDATA4 0x0b
#define ENCODING_DATAREL_SDATA4 0x3b

/* Each FDE of a hostile file may have a CIE of its own, so none is read at any length. */
#define LEB128_BYTES_MAX 10
#define AUGMENTATION_BYTES_MAX 16

/* ---- reading ---- */

const uint8_t *reader_take(struct reader *reader, size_t count)
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

uint64_t reader_number(struct reader *reader, size_t count)
{
	const uint8_t *bytes = reader_take(reader, count);
	uint64_t value = 0;

	if (bytes && count <= sizeof(value))
		memcpy(&value, bytes, count);
	return value;
}

/* *bits: of the value that were read. Those beyond 64 are lost. */
static uint64_t read_leb128(struct reader *reader, unsigned int *bits)
{
	uint64_t value = 0, byte;

	*bits = 0;
	do {
		if (*bits == 7 * LEB128_BYTES_MAX)
			reader->failed = true;
		byte = reader_number(reader, 1);
		if (*bits < 64)
			value |= (byte & 0x7f) << *bits;
		*bits += 7;
	} while (byte & 0x80 && !reader->failed);
	return reader->failed ? 0 : value;
}

uint64_t reader_uleb128(struct reader *reader)
{
	unsigned int bits;

	return read_leb128(reader, &bits);
}

int64_t reader_sleb128(struct reader *reader)
{
	unsigned int bits;
	uint64_t value = read_leb128(reader, &bits);

	if (bits < 64 && value >> (bits - 1) & 1)
		value |= UINT64_MAX << bits;
	return (int64_t)value;
}

/* ---- records ---- */

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

/* The end of the augmentation that begins here, NULL when it is too far. */
static const uint8_t *find_end(const struct reader *reader)
{
	return memchr(reader->at, '\0',
		      reader->left < AUGMENTATION_BYTES_MAX ? reader->left
							    : AUGMENTATION_BYTES_MAX);
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
	uint64_t length = reader_number(reader, 4);

	*header_bytes = 4;
	if (length == 0xffffffff) {
		length = reader_number(reader, 8);
		*header_bytes = 12;
	}
	if (!length || length > reader->left)
		reader->failed = true;
	else
		reader->left = length;
}

static void read_augmentation(struct reader *reader, const char *augmentation, struct eh_cie *out)
{
	out->augmented = augmentation[0] == 'z';
	if (out->augmented)
		reader_uleb128(reader);
	for (const char *letter = augmentation; *letter; letter++) {
		if (*letter == 'R')
			out->encoding = reader_number(reader, 1);
		else if (*letter == 'L')
			reader_take(reader, 1);
		else if (*letter == 'P')
			reader_take(reader, encoded_bytes(reader_number(reader, 1)));
		else if (*letter == 'S')
			out->signal = true;
	}
}

static bool read_cie(const struct rls_elf *elf, uint64_t vaddr, struct eh_cie *out)
{
	struct eh_cie cie = {.vaddr = vaddr, .encoding = ENCODING_ABSOLUTE};
	struct reader reader = reader_at(elf, vaddr);
	const char *augmentation;
	const uint8_t *end;
	size_t header_bytes;
	uint8_t version;

	enter_record(&reader, &header_bytes);
	if (reader_number(&reader, 4) != 0 || reader.failed)
		return false;
	version = reader_number(&reader, 1);
	augmentation = (const char *)reader.at;
	end = reader.failed ? NULL : find_end(&reader);
	if (!end || (version != 1 && version != 3))
		return false;
	reader_take(&reader, end - reader.at + 1);
	cie.code_alignment = reader_uleb128(&reader);
	cie.data_alignment = reader_sleb128(&reader);
	if (version == 1)
		reader_take(&reader, 1);
	else
		reader_uleb128(&reader); /* return address register */
	read_augmentation(&reader, augmentation, &cie);
	cie.program = reader;
	*out = cie;
	return !reader.failed;
}

bool eh_read_fde(const struct rls_elf *elf, uint64_t vaddr, struct eh_cie *cie, struct eh_fde *out)
{
	struct reader reader = reader_at(elf, vaddr);
	size_t header_bytes, pointer_bytes;
	uint64_t cie_vaddr;
	uint32_t distance;

	enter_record(&reader, &header_bytes);
	distance = reader_number(&reader, 4);
	if (reader.failed || !distance || distance >= vaddr + header_bytes)
		return false;
	cie_vaddr = vaddr + header_bytes - distance;
	if (cie->vaddr != cie_vaddr && !read_cie(elf, cie_vaddr, cie)) {
		cie->vaddr = 0;
		return false;
	}
	pointer_bytes = encoded_bytes(cie->encoding);
	if (!pointer_bytes)
		return false;
	reader_take(&reader, pointer_bytes);
	out->size_bytes = reader_number(&reader, pointer_bytes);
	if (cie->augmented)
		reader_take(&reader, reader_uleb128(&reader));
	out->program = reader;
	return !reader.failed;
}

struct elf_table eh_search_table(const struct rls_elf *elf)
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

void eh_search_entry(const struct rls_elf *elf, const struct elf_table *table, size_t i,
		     uint64_t *function, uint64_t *fde)
{
	int32_t entry[2];

	elf_table_entry(table, i, entry);
	*function = elf->eh_frame_hdr + (int64_t)entry[0];
	*fde = elf->eh_frame_hdr + (int64_t)entry[1];
}
