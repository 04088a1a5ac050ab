/* ELF image: an open library from inside, for the elf_*.c files. Others use elf.h. */
#ifndef RLS_ELF_IMAGE_H
#define RLS_ELF_IMAGE_H

#include <elf.h>

#include "userspace/elf/elf.h"

/* A table inside the file: its place is checked when it is filled in, and its entries are
 * read by copying, because nothing says that a hostile file aligns them. */
struct elf_table {
	const uint8_t *data;
	size_t entry_bytes;
	size_t count;
};

struct elf_strings {
	const char *data;
	size_t size_bytes;
};

struct elf_dynamic {
	uint64_t symtab, strtab, strtab_bytes;
	uint64_t hash, gnu_hash;
	uint64_t rela, rela_bytes, jmprel, jmprel_bytes, relr, relr_bytes;
};

struct rls_elf {
	const uint8_t *data;
	size_t size_bytes;
	uint8_t *owned; /* data, where it is no file's */
	int guard; /* slot of elf_guard.c */

	struct rls_elf_segment *segments; /* ascending, disjoint */
	size_t segment_count;
	uint64_t eh_frame_hdr, eh_frame_hdr_bytes;

	struct elf_table sections;
	struct elf_strings section_names;
	struct elf_table dynamic_entries;
	struct elf_dynamic dynamic;

	struct elf_table dynamic_symbols;
	struct elf_strings dynamic_strings;
	struct elf_table static_symbols;
	struct elf_strings static_strings;

	struct rls_elf_extent *extents;
	size_t extent_count;
	bool extents_read;
};

/* Bytes at a file offset, or NULL when they are not all in the file. */
const uint8_t *elf_file_bytes(const struct rls_elf *elf, uint64_t offset, uint64_t length);

/* A table of whole entries at a virtual address; empty when it is not backed by the file. */
struct elf_table elf_table_at(const struct rls_elf *elf, uint64_t vaddr, uint64_t bytes,
			      size_t entry_bytes);
void elf_table_entry(const struct elf_table *table, size_t index, void *out);

/* The string at an offset: "" when it is out of range, or its end too far to be a name's. */
const char *elf_string(const struct elf_strings *strings, uint64_t offset);

/* The section header's contents (SHT_NOBITS: empty). 0 or -ENOENT. */
int elf_find_section(const struct rls_elf *elf, uint32_t type, const char *name, Elf64_Shdr *out);

#endif
