/* ELF: one library file, mapped read-only, with what discovery and planning ask of it.
 *
 * The file is the target's, hence hostile: every offset and count is checked against the
 * file's size before use; a broken table reads as empty. x86-64 ELF only. A reader is
 * used by one thread; pointers into it are valid until rls_elf_close.
 */
#ifndef RLS_ELF_H
#define RLS_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rls_elf;

/* 0; -ENOEXEC when it is not an x86-64 ELF executable or shared object; -errno. */
int rls_elf_open(const char *path, struct rls_elf **out);
int rls_elf_open_fd(int fd, struct rls_elf **out); /* which it does not keep */
/* Takes bytes over (malloc's), also when it fails. */
int rls_elf_open_bytes(uint8_t *bytes, size_t size_bytes, struct rls_elf **out);
void rls_elf_close(struct rls_elf *elf);

/* Bytes at a virtual address, or NULL when [vaddr, vaddr + length) is not backed by the
 * file within one loadable segment. Not relocated. */
const uint8_t *rls_elf_bytes(const struct rls_elf *elf, uint64_t vaddr, size_t length);

/* Bytes from vaddr to the end of the file-backed part of its segment; 0 when unmapped. */
size_t rls_elf_bytes_left(const struct rls_elf *elf, uint64_t vaddr);

bool rls_elf_is_executable(const struct rls_elf *elf, uint64_t vaddr);

/* File offset of a file-backed virtual address: 0, or -ERANGE. */
int rls_elf_file_offset(const struct rls_elf *elf, uint64_t vaddr, uint64_t *out);

/* Virtual address of the mapping start, for load_bias: the segment holding this file offset
 * is mapped at vaddr - offset_in_segment. 0, or -ERANGE. */
int rls_elf_vaddr_of_offset(const struct rls_elf *elf, uint64_t file_offset, uint64_t *out);

struct rls_elf_segment {
	uint64_t vaddr, offset, file_bytes, memory_bytes;
	bool executable, writable;
};
/* Ascending and disjoint. */
size_t rls_elf_segments(const struct rls_elf *elf, const struct rls_elf_segment **out);

struct rls_elf_symbol {
	const char *name; /* never NULL */
	uint64_t vaddr; /* 0 when undefined here */
	uint64_t size_bytes;
	bool function; /* STT_FUNC or STT_GNU_IFUNC */
	bool defined;
	bool exported; /* global or weak, default or protected visibility */
	bool indirect; /* STT_GNU_IFUNC: vaddr is the resolver, no boundary function */
};
/* Calls visit for each symbol of .dynsym, then (if there) .symtab; stops on non-zero and
 * returns that. static_only symbols come with exported == false. */
int rls_elf_each_symbol(const struct rls_elf *elf,
			int (*visit)(const struct rls_elf_symbol *symbol, void *context),
			void *context);
/* The same for .symtab alone: in a file that has only what debuggers need, all else is void. */
int rls_elf_each_static_symbol(const struct rls_elf *elf,
			       int (*visit)(const struct rls_elf_symbol *symbol, void *context),
			       void *context);
bool rls_elf_has_static_symbols(const struct rls_elf *elf);
/* First defined symbol of this name, .dynsym first. 0 or -ENOENT. */
int rls_elf_find_symbol(const struct rls_elf *elf, const char *name, struct rls_elf_symbol *out);
/* In .symtab alone. 0 or -ENOENT. */
int rls_elf_find_static_symbol(const struct rls_elf *elf, const char *name,
			       struct rls_elf_symbol *out);
/* Whether one of the names is an undefined symbol's. The names of the others, megabytes in a
 * large library, are not touched. */
bool rls_elf_imports_any(const struct rls_elf *elf, const char *const *names, size_t count);
/* The same of names that begin so. */
bool rls_elf_imports_prefix(const struct rls_elf *elf, const char *const *prefixes, size_t count);

struct rls_elf_relocation {
	uint64_t vaddr; /* the word relocated */
	uint32_t type; /* R_X86_64_* */
	int64_t addend;
	const char *symbol; /* NULL for none */
	uint64_t symbol_vaddr; /* 0 when undefined here */
	bool plt; /* from DT_JMPREL */
};
/* Every dynamic relocation: DT_RELA, DT_JMPREL and DT_RELR (given as R_X86_64_RELATIVE). */
int rls_elf_each_relocation(const struct rls_elf *elf,
			    int (*visit)(const struct rls_elf_relocation *relocation,
					 void *context),
			    void *context);

bool rls_elf_has_section(const struct rls_elf *elf, const char *name);
/* What the file holds of a section, uncompressed ones only. 0 or -ENOENT. */
int rls_elf_section(const struct rls_elf *elf, const char *name, const uint8_t **bytes,
		    size_t *count);
/* The bytes of the build's identity; 0: it has none. */
size_t rls_elf_build_id(const struct rls_elf *elf, const uint8_t **out);

/* A USDT site, from its note: virtual addresses; semaphore 0 when it has none. */
struct rls_elf_usdt {
	uint64_t site_vaddr;
	uint64_t semaphore_vaddr;
};
/* The first of this name, wherever it says that it is: check that before use. 0 or -ENOENT. */
int rls_elf_find_usdt(const struct rls_elf *elf, const char *provider, const char *probe,
		      struct rls_elf_usdt *out);

/* Function extents from .eh_frame (through .eh_frame_hdr), for stripped files. */
struct rls_elf_extent {
	uint64_t vaddr;
	uint64_t size_bytes;
};
/* Sorted by vaddr, disjoint; computed at the first call and owned by elf. Returns the count. */
size_t rls_elf_extents(struct rls_elf *elf, const struct rls_elf_extent **out);
/* The extent holding vaddr, or NULL. */
const struct rls_elf_extent *rls_elf_extent_at(struct rls_elf *elf, uint64_t vaddr);

/* From the stack pointer at vaddr, before its instruction, up to behind the return address of the
 * function around it, from .eh_frame. 0; -ENOENT when it is unknown, or based on another register. */
int rls_elf_frame_bytes(const struct rls_elf *elf, uint64_t vaddr, uint64_t *out);

#endif
