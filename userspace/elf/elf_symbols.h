/* The symbol tables of an open library, for elf_open.c. Others use elf.h. */
#ifndef RLS_ELF_SYMBOLS_H
#define RLS_ELF_SYMBOLS_H

struct rls_elf;

/* Finds .dynsym and .symtab; needs the dynamic section and the sections. */
void elf_load_symbols(struct rls_elf *elf);

#endif
