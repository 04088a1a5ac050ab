#include "userspace/elf/elf_image.h"

#include <errno.h>
#include <string.h>

#include "analysis/base/search.h"

/* The kernel maps whole pages, whatever p_align says. */
#define PAGE_BYTES 4096ULL

/* The longest name in PyTorch has 574 bytes. Without a bound, each symbol of a hostile
 * file could have all of it for its name. */
#define STRING_BYTES_MAX (16 * 1024)

const uint8_t *elf_file_bytes(const struct rls_elf *elf, uint64_t offset, uint64_t length)
{
	if (offset > elf->size_bytes || length > elf->size_bytes - offset)
		return NULL;
	return elf->data + offset;
}

struct elf_table elf_table_at(const struct rls_elf *elf, uint64_t vaddr, uint64_t bytes,
			      size_t entry_bytes)
{
	struct elf_table table = {.entry_bytes = entry_bytes};

	table.data = rls_elf_bytes(elf, vaddr, bytes);
	if (table.data)
		table.count = bytes / entry_bytes;
	return table;
}

void elf_table_entry(const struct elf_table *table, size_t index, void *out)
{
	memcpy(out, table->data + index * table->entry_bytes, table->entry_bytes);
}

const char *elf_string(const struct elf_strings *strings, uint64_t offset)
{
	size_t left;

	if (offset >= strings->size_bytes)
		return "";
	left = strings->size_bytes - offset;
	if (left > STRING_BYTES_MAX)
		left = STRING_BYTES_MAX;
	return memchr(strings->data + offset, '\0', left) ? strings->data + offset : "";
}

int elf_find_section(const struct rls_elf *elf, uint32_t type, const char *name, Elf64_Shdr *out)
{
	for (size_t i = 0; i < elf->sections.count; i++) {
		Elf64_Shdr section;

		elf_table_entry(&elf->sections, i, &section);
		if (type != SHT_NULL && section.sh_type != type)
			continue;
		if (name && strcmp(elf_string(&elf->section_names, section.sh_name), name))
			continue;
		*out = section;
		return 0;
	}
	return -ENOENT;
}

static const struct rls_elf_segment *file_segment_of(const struct rls_elf *elf, uint64_t vaddr)
{
	size_t low = rls_first_not(elf->segment_count, i, elf->segments[i].vaddr <= vaddr);

	if (!low || vaddr - elf->segments[low - 1].vaddr >= elf->segments[low - 1].file_bytes)
		return NULL;
	return &elf->segments[low - 1];
}

const uint8_t *rls_elf_bytes(const struct rls_elf *elf, uint64_t vaddr, size_t length)
{
	const struct rls_elf_segment *segment = file_segment_of(elf, vaddr);

	if (!segment || length > segment->file_bytes - (vaddr - segment->vaddr))
		return NULL;
	return elf_file_bytes(elf, segment->offset + (vaddr - segment->vaddr), length);
}

size_t rls_elf_bytes_left(const struct rls_elf *elf, uint64_t vaddr)
{
	const struct rls_elf_segment *segment = file_segment_of(elf, vaddr);

	return segment ? segment->file_bytes - (vaddr - segment->vaddr) : 0;
}

bool rls_elf_is_executable(const struct rls_elf *elf, uint64_t vaddr)
{
	const struct rls_elf_segment *segment = file_segment_of(elf, vaddr);

	return segment && segment->executable;
}

int rls_elf_file_offset(const struct rls_elf *elf, uint64_t vaddr, uint64_t *out)
{
	const struct rls_elf_segment *segment = file_segment_of(elf, vaddr);

	if (!segment)
		return -ERANGE;
	*out = segment->offset + (vaddr - segment->vaddr);
	return 0;
}

/* Segments share pages of the file at their edges; a mapping begins at the page that holds
 * the segment's first byte. Callers ask for executable mappings, so those segments win. */
static bool holds_offset(const struct rls_elf_segment *segment, uint64_t file_offset)
{
	uint64_t first = segment->offset & ~(PAGE_BYTES - 1);

	return file_offset >= first && file_offset < segment->offset + segment->file_bytes;
}

int rls_elf_vaddr_of_offset(const struct rls_elf *elf, uint64_t file_offset, uint64_t *out)
{
	const struct rls_elf_segment *found = NULL;

	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct rls_elf_segment *segment = &elf->segments[i];

		if (!holds_offset(segment, file_offset))
			continue;
		if (!found || (segment->executable && !found->executable))
			found = segment;
	}
	if (!found)
		return -ERANGE;
	*out = found->vaddr + (file_offset - found->offset);
	return 0;
}

size_t rls_elf_segments(const struct rls_elf *elf, const struct rls_elf_segment **out)
{
	*out = elf->segments;
	return elf->segment_count;
}

bool rls_elf_has_section(const struct rls_elf *elf, const char *name)
{
	Elf64_Shdr section;

	return !elf_find_section(elf, SHT_NULL, name, &section);
}

int rls_elf_section(const struct rls_elf *elf, const char *name, const uint8_t **bytes,
		    size_t *count)
{
	const uint8_t *found;
	Elf64_Shdr section;

	if (elf_find_section(elf, SHT_NULL, name, &section) || section.sh_type == SHT_NOBITS ||
	    section.sh_flags & SHF_COMPRESSED)
		return -ENOENT;
	found = elf_file_bytes(elf, section.sh_offset, section.sh_size);
	if (!found)
		return -ENOENT;
	*bytes = found;
	*count = section.sh_size;
	return 0;
}

size_t rls_elf_build_id(const struct rls_elf *elf, const uint8_t **out)
{
	Elf64_Nhdr note;
	const uint8_t *bytes;
	size_t count;

	if (rls_elf_section(elf, ".note.gnu.build-id", &bytes, &count) ||
	    count < sizeof(note) + sizeof(ELF_NOTE_GNU))
		return 0;
	memcpy(&note, bytes, sizeof(note));
	if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
	    memcmp(bytes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
	    note.n_descsz > count - sizeof(note) - sizeof(ELF_NOTE_GNU))
		return 0;
	*out = bytes + sizeof(note) + sizeof(ELF_NOTE_GNU);
	return note.n_descsz;
}
