/* Opening: maps the file, checks its headers, finds its tables. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/elf/elf_guard.h"
#include "userspace/elf/elf_image.h"
#include "userspace/elf/elf_symbols.h"

static int check_header(const struct rls_elf *elf, Elf64_Ehdr *header)
{
	const uint8_t *bytes = elf_file_bytes(elf, 0, sizeof(*header));

	if (!bytes)
		return -ENOEXEC;
	memcpy(header, bytes, sizeof(*header));
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != EM_X86_64)
		return -ENOEXEC;
	if (header->e_type != ET_DYN && header->e_type != ET_EXEC)
		return -ENOEXEC;
	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	return 0;
}

static void add_segment(struct rls_elf *elf, const Elf64_Phdr *program)
{
	struct rls_elf_segment segment = {
		.vaddr = program->p_vaddr,
		.offset = program->p_offset,
		.file_bytes = program->p_filesz,
		.memory_bytes = program->p_memsz,
		.executable = program->p_flags & PF_X,
		.writable = program->p_flags & PF_W,
	};

	if (program->p_offset > elf->size_bytes)
		return;
	/* A cut file keeps what is left of it; sums below must not wrap. */
	if (segment.file_bytes > elf->size_bytes - segment.offset)
		segment.file_bytes = elf->size_bytes - segment.offset;
	if (segment.memory_bytes < segment.file_bytes)
		segment.memory_bytes = segment.file_bytes;
	if (segment.vaddr + segment.memory_bytes < segment.vaddr)
		return;
	elf->segments[elf->segment_count++] = segment;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct rls_elf_segment *left = a, *right = b;

	return (left->vaddr > right->vaddr) - (left->vaddr < right->vaddr);
}

/* No two segments of a real file overlap. In a hostile one each address is the first's:
 * otherwise one file would be as many times its size as it has headers. */
static void make_disjoint(struct rls_elf *elf)
{
	size_t kept = 0;
	uint64_t end = 0;

	if (elf->segment_count)
		qsort(elf->segments, elf->segment_count, sizeof(*elf->segments), by_vaddr);
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct rls_elf_segment *segment = &elf->segments[i];

		if (segment->vaddr < end)
			continue;
		end = segment->vaddr + segment->memory_bytes;
		elf->segments[kept++] = *segment;
	}
	elf->segment_count = kept;
}

static int load_program_headers(struct rls_elf *elf, const Elf64_Ehdr *header)
{
	struct elf_table programs = {.entry_bytes = sizeof(Elf64_Phdr), .count = header->e_phnum};

	programs.data = elf_file_bytes(elf, header->e_phoff, programs.count * sizeof(Elf64_Phdr));
	if (!programs.data || !programs.count)
		return -ENOEXEC;
	elf->segments = calloc(programs.count, sizeof(*elf->segments));
	if (!elf->segments)
		return -ENOMEM;
	for (size_t i = 0; i < programs.count; i++) {
		Elf64_Phdr program;

		elf_table_entry(&programs, i, &program);
		if (program.p_type == PT_LOAD) {
			add_segment(elf, &program);
		} else if (program.p_type == PT_GNU_EH_FRAME) {
			elf->eh_frame_hdr = program.p_vaddr;
			elf->eh_frame_hdr_bytes = program.p_memsz;
		}
	}
	make_disjoint(elf);
	for (size_t i = 0; i < programs.count; i++) {
		Elf64_Phdr program;

		elf_table_entry(&programs, i, &program);
		if (program.p_type == PT_DYNAMIC)
			elf->dynamic_entries = elf_table_at(elf, program.p_vaddr, program.p_filesz,
							    sizeof(Elf64_Dyn));
	}
	return elf->segment_count ? 0 : -ENOEXEC;
}

/* Section headers are a convenience that strippers may remove: without them the file is
 * still good. */
static void load_sections(struct rls_elf *elf, const Elf64_Ehdr *header)
{
	struct elf_table sections = {.entry_bytes = sizeof(Elf64_Shdr), .count = header->e_shnum};
	Elf64_Shdr names;

	if (header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	sections.data = elf_file_bytes(elf, header->e_shoff, sections.count * sizeof(Elf64_Shdr));
	if (!sections.data || !sections.count)
		return;
	elf->sections = sections;
	if (header->e_shstrndx >= sections.count)
		return;
	elf_table_entry(&sections, header->e_shstrndx, &names);
	elf->section_names.data = (const char *)elf_file_bytes(elf, names.sh_offset, names.sh_size);
	if (elf->section_names.data)
		elf->section_names.size_bytes = names.sh_size;
}

static uint64_t *dynamic_field(struct elf_dynamic *dynamic, int64_t tag)
{
	switch (tag) {
	case DT_SYMTAB:
		return &dynamic->symtab;
	case DT_STRTAB:
		return &dynamic->strtab;
	case DT_STRSZ:
		return &dynamic->strtab_bytes;
	case DT_HASH:
		return &dynamic->hash;
	case DT_GNU_HASH:
		return &dynamic->gnu_hash;
	case DT_RELA:
		return &dynamic->rela;
	case DT_RELASZ:
		return &dynamic->rela_bytes;
	case DT_JMPREL:
		return &dynamic->jmprel;
	case DT_PLTRELSZ:
		return &dynamic->jmprel_bytes;
	case DT_RELR:
		return &dynamic->relr;
	case DT_RELRSZ:
		return &dynamic->relr_bytes;
	default:
		return NULL;
	}
}

static void load_dynamic(struct rls_elf *elf)
{
	for (size_t i = 0; i < elf->dynamic_entries.count; i++) {
		Elf64_Dyn entry;
		uint64_t *field;

		elf_table_entry(&elf->dynamic_entries, i, &entry);
		if (entry.d_tag == DT_NULL) {
			elf->dynamic_entries.count = i;
			break;
		}
		field = dynamic_field(&elf->dynamic, entry.d_tag);
		if (field)
			*field = entry.d_un.d_val;
	}
}

static int map_file(struct rls_elf *elf, int fd)
{
	struct stat status;
	void *data;

	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(Elf64_Ehdr))
		return -ENOEXEC;
	/* Shared, because the kernel plants its breakpoints in private mappings of a probed file,
	 * ours included: we would read int3 where another recording has a probe. */
	data = mmap(NULL, status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	elf->data = data;
	elf->size_bytes = status.st_size;
	elf->guard = elf_guard_add(data, elf->size_bytes);
	return 0;
}

static int elf_open_load(struct rls_elf *elf)
{
	Elf64_Ehdr header;
	int error = check_header(elf, &header);

	if (error)
		return error;
	error = load_program_headers(elf, &header);
	if (error)
		return error;
	load_sections(elf, &header);
	load_dynamic(elf);
	elf_load_symbols(elf);
	return 0;
}

int rls_elf_open_fd(int fd, struct rls_elf **out)
{
	struct rls_elf *elf = calloc(1, sizeof(*elf));
	int error;

	if (!elf)
		return -ENOMEM;
	elf->guard = -1;
	error = map_file(elf, fd);
	if (!error)
		error = elf_open_load(elf);
	if (error) {
		rls_elf_close(elf);
		return error;
	}
	*out = elf;
	return 0;
}

int rls_elf_open(const char *path, struct rls_elf **out)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : rls_elf_open_fd(fd, out);
}

int rls_elf_open_bytes(uint8_t *bytes, size_t size_bytes, struct rls_elf **out)
{
	struct rls_elf *elf = calloc(1, sizeof(*elf));
	int error;

	if (!elf) {
		free(bytes);
		return -ENOMEM;
	}
	elf->guard = -1;
	elf->data = elf->owned = bytes;
	elf->size_bytes = size_bytes;
	error = elf_open_load(elf);
	if (error) {
		rls_elf_close(elf);
		return error;
	}
	*out = elf;
	return 0;
}

void rls_elf_close(struct rls_elf *elf)
{
	if (!elf)
		return;
	elf_guard_remove(elf->guard);
	if (elf->owned)
		free(elf->owned);
	else if (elf->data)
		munmap((void *)elf->data, elf->size_bytes);
	free(elf->segments);
	free(elf->extents);
	free(elf);
}
