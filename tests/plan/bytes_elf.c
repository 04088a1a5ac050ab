#include "bytes_elf.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct rls_elf *bytes_elf_open(const uint8_t *code, size_t length)
{
	char path[] = "/tmp/rlscope-bytes-XXXXXX";
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = BYTES_ELF_VADDR,
		.p_vaddr = BYTES_ELF_VADDR,
		.p_filesz = length,
		.p_memsz = length,
		.p_align = 0x1000,
	};
	struct rls_elf *elf = NULL;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, &segment, sizeof(segment), sizeof(header)), sizeof(segment));
	assert_int_equal(pwrite(fd, code, length, BYTES_ELF_VADDR), length);
	assert_int_equal(rls_elf_open(path, &elf), 0);
	close(fd);
	unlink(path);
	return elf;
}
