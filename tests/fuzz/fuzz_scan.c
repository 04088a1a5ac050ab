/* The memory of a hostile process: the input is all of it, read as a heap and as a file's
 * image. Its first byte chooses which, the rest lies at HEAP, in front of a library whose
 * code is whole.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/discover/harvest.h"

/* The library: data, then code; what of the input reaches into it is its data. */
#define HEAP 0x100000ULL
#define LIBRARY 0x100800ULL
#define CODE 0x101000ULL
#define CODE_BYTES 0x1000ULL

enum { READ_AS_IMAGE = 1, UNKNOWN_LAYOUT = 2 };

struct memory {
	struct rls_space space;
	const uint8_t *bytes;
	size_t size;
};

static size_t read_memory(const struct rls_space *space, uint64_t address, void *buffer,
			  size_t length)
{
	const struct memory *memory = (const struct memory *)space;
	size_t left;

	if (address < HEAP || address - HEAP >= memory->size)
		return 0;
	left = memory->size - (address - HEAP);
	if (length > left)
		length = left;
	memcpy(buffer, memory->bytes + (address - HEAP), length);
	return length;
}

/* A file of one segment, all code. */
static struct rls_elf *open_library(void)
{
	static struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		uint8_t code[CODE_BYTES];
	} file = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
			   .e_type = ET_DYN,
			   .e_machine = EM_X86_64,
			   .e_phoff = sizeof(Elf64_Ehdr),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		.segment = {.p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			    .p_vaddr = CODE - LIBRARY,
			    .p_filesz = CODE_BYTES,
			    .p_memsz = CODE_BYTES},
	};
	int fd = fuzz_file((const uint8_t *)&file, sizeof(file));
	struct rls_elf *elf = NULL;
	char path[FUZZ_PATH_BYTES];

	fuzz_file_path(fd, path);
	fuzz_require(!rls_elf_open(path, &elf), "the library is one");
	close(fd);
	return elf;
}

static void check_functions(struct rls_function_set *set)
{
	struct rls_boundary_function *functions;
	size_t count;

	if (rls_function_set_finish(set, &functions, &count))
		abort();
	for (size_t i = 0; i < count; i++) {
		fuzz_require(!i || functions[i - 1].vaddr < functions[i].vaddr,
			     "functions ascend and are unique");
		fuzz_require(functions[i].vaddr + LIBRARY >= CODE &&
				     functions[i].vaddr + LIBRARY < CODE + CODE_BYTES,
			     "a function is in the library");
		fuzz_require(functions[i].name && functions[i].name[0], "a function has a name");
		free(functions[i].name);
	}
	free(functions);
}

static void scan_memory(struct memory *memory, unsigned int how, struct rls_elf *elf)
{
	static const struct rls_scan_target target = {.begin = LIBRARY,
						      .end = CODE + CODE_BYTES,
						      .code_begin = CODE,
						      .code_end = CODE + CODE_BYTES};
	static struct rls_mapping entries[] = {
		{.start = HEAP, .end = CODE, .readable = true, .writable = true, .path = ""},
		{.start = CODE, .end = CODE + CODE_BYTES, .executable = true, .path = "/lib.so"},
	};
	static const struct rls_mappings mappings = {.entries = entries, .count = 2};
	static const struct rls_role_rule whole = {
		.role = RLS_ROLE_NATIVE, .file_glob = "*", .methods = RLS_METHODS_ALL};
	const struct rls_role_match match = {
		.role = RLS_ROLE_NATIVE, .rules = {&whole}, .count = 1};
	struct rls_harvest_library library = {.elf = elf, .load_bias = LIBRARY, .match = &match};
	struct rls_scan scan;

	rls_scan_init(&scan, &target, 1);
	scan.mappings = how & READ_AS_IMAGE ? NULL : &mappings;
	scan.objects = !(how & UNKNOWN_LAYOUT);
	scan.module_def_type = HEAP;
	rls_scan_block(&scan, HEAP, memory->bytes, memory->size);
	if (rls_scan_finish(&scan) ||
	    rls_harvest(&scan, &memory->space, &library, RLS_SOURCE_METHOD_LIVE, 8 + how / 4 % 8))
		abort();
	check_functions(&library.functions);
	rls_scan_release(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rls_elf *elf;
	struct memory memory = {.space.read = read_memory};
	uint8_t *bytes;

	if (!size)
		return 0;
	if (!elf)
		elf = open_library();
	/* Exactly that many, and aligned as memory is. */
	bytes = malloc(size - 1 ? size - 1 : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	memory.bytes = bytes;
	memory.size = size - 1;
	scan_memory(&memory, data[0], elf);
	free(bytes);
	return 0;
}
