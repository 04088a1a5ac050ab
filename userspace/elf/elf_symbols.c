/* Symbol tables and the relocations that name their symbols. */
#include <errno.h>
#include <string.h>

#include "userspace/elf/elf_image.h"
#include "userspace/elf/elf_symbols.h"

/* Nothing in the dynamic section says how long .dynsym is; the hash tables do, by reaching
 * the last symbol. DT_HASH's nchain is the count itself. */
static size_t count_by_hash(const struct rls_elf *elf)
{
	const uint8_t *bytes = rls_elf_bytes(elf, elf->dynamic.hash, 8);
	uint32_t chain_count;

	if (!elf->dynamic.hash || !bytes)
		return 0;
	memcpy(&chain_count, bytes + 4, sizeof(chain_count));
	return chain_count;
}

struct gnu_hash {
	uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
};

/* The highest symbol any bucket begins with; its chain ends at the last symbol of all. */
static uint32_t highest_bucket(const struct elf_table *buckets)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < buckets->count; i++) {
		uint32_t symbol;

		elf_table_entry(buckets, i, &symbol);
		if (symbol > highest)
			highest = symbol;
	}
	return highest;
}

static size_t count_by_gnu_hash(const struct rls_elf *elf)
{
	uint64_t vaddr = elf->dynamic.gnu_hash;
	const uint8_t *bytes = rls_elf_bytes(elf, vaddr, sizeof(struct gnu_hash));
	struct gnu_hash hash;
	struct elf_table buckets, chains;
	uint32_t last;

	if (!vaddr || !bytes)
		return 0;
	memcpy(&hash, bytes, sizeof(hash));
	vaddr += sizeof(hash) + 8ULL * hash.bloom_words;
	buckets = elf_table_at(elf, vaddr, 4ULL * hash.bucket_count, 4);
	last = highest_bucket(&buckets);
	if (last < hash.first_symbol)
		return hash.first_symbol;
	vaddr += 4ULL * hash.bucket_count;
	chains = elf_table_at(elf, vaddr, rls_elf_bytes_left(elf, vaddr), 4);
	for (size_t i = last - hash.first_symbol; i < chains.count; i++, last++) {
		uint32_t value;

		elf_table_entry(&chains, i, &value);
		if (value & 1)
			return (size_t)last + 1;
	}
	return 0;
}

static void load_dynamic_symbols(struct rls_elf *elf)
{
	uint64_t vaddr = elf->dynamic.symtab;
	size_t left = rls_elf_bytes_left(elf, vaddr) / sizeof(Elf64_Sym);
	size_t count = count_by_hash(elf), by_gnu_hash = count_by_gnu_hash(elf);
	Elf64_Shdr section;

	if (!vaddr || !elf->dynamic.strtab)
		return;
	if (by_gnu_hash > count)
		count = by_gnu_hash;
	/* The GNU hash leaves out a tail of undefined symbols when nothing is exported. */
	if (!elf_find_section(elf, SHT_DYNSYM, NULL, &section) && section.sh_addr == vaddr &&
	    section.sh_size / sizeof(Elf64_Sym) > count)
		count = section.sh_size / sizeof(Elf64_Sym);
	if (count > left)
		count = left;
	elf->dynamic_symbols =
		elf_table_at(elf, vaddr, count * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
}

static void load_dynamic_strings(struct rls_elf *elf)
{
	const struct elf_dynamic *dynamic = &elf->dynamic;
	const uint8_t *data = rls_elf_bytes(elf, dynamic->strtab, dynamic->strtab_bytes);

	if (!data)
		return;
	elf->dynamic_strings.data = (const char *)data;
	elf->dynamic_strings.size_bytes = dynamic->strtab_bytes;
}

static void load_static_symbols(struct rls_elf *elf)
{
	Elf64_Shdr symbols, strings;
	const uint8_t *symbol_data, *string_data;

	if (elf_find_section(elf, SHT_SYMTAB, NULL, &symbols) ||
	    symbols.sh_link >= elf->sections.count)
		return;
	elf_table_entry(&elf->sections, symbols.sh_link, &strings);
	symbol_data = elf_file_bytes(elf, symbols.sh_offset, symbols.sh_size);
	string_data = elf_file_bytes(elf, strings.sh_offset, strings.sh_size);
	if (!symbol_data || !string_data || strings.sh_type != SHT_STRTAB)
		return;
	elf->static_symbols = (struct elf_table){.data = symbol_data,
						 .entry_bytes = sizeof(Elf64_Sym),
						 .count = symbols.sh_size / sizeof(Elf64_Sym)};
	elf->static_strings.data = (const char *)string_data;
	elf->static_strings.size_bytes = strings.sh_size;
}

void elf_load_symbols(struct rls_elf *elf)
{
	load_dynamic_strings(elf);
	load_dynamic_symbols(elf);
	load_static_symbols(elf);
}

static bool visible(const Elf64_Sym *symbol)
{
	unsigned int bind = ELF64_ST_BIND(symbol->st_info);
	unsigned int visibility = ELF64_ST_VISIBILITY(symbol->st_other);

	return (bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE) &&
	       (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static struct rls_elf_symbol elf_symbols_describe(const Elf64_Sym *symbol,
						  const struct elf_strings *strings, bool dynamic)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);
	bool defined = symbol->st_shndx != SHN_UNDEF;

	return (struct rls_elf_symbol){
		.name = elf_string(strings, symbol->st_name),
		/* A thread-local's value is an offset in its block, not an address. */
		.vaddr = defined && type != STT_TLS ? symbol->st_value : 0,
		.size_bytes = symbol->st_size,
		.function = type == STT_FUNC || type == STT_GNU_IFUNC,
		.defined = defined,
		.exported = dynamic && defined && visible(symbol),
		.indirect = type == STT_GNU_IFUNC,
	};
}

static int each_in_table(const struct elf_table *table, const struct elf_strings *strings,
			 bool dynamic, int (*visit)(const struct rls_elf_symbol *, void *),
			 void *context)
{
	/* Entry 0 is the null symbol. */
	for (size_t i = 1; i < table->count; i++) {
		Elf64_Sym entry;
		struct rls_elf_symbol symbol;
		int error;

		elf_table_entry(table, i, &entry);
		symbol = elf_symbols_describe(&entry, strings, dynamic);
		error = visit(&symbol, context);
		if (error)
			return error;
	}
	return 0;
}

int rls_elf_each_symbol(const struct rls_elf *elf,
			int (*visit)(const struct rls_elf_symbol *symbol, void *context),
			void *context)
{
	int error =
		each_in_table(&elf->dynamic_symbols, &elf->dynamic_strings, true, visit, context);

	return error ? error : rls_elf_each_static_symbol(elf, visit, context);
}

int rls_elf_each_static_symbol(const struct rls_elf *elf,
			       int (*visit)(const struct rls_elf_symbol *symbol, void *context),
			       void *context)
{
	return each_in_table(&elf->static_symbols, &elf->static_strings, false, visit, context);
}

bool rls_elf_has_static_symbols(const struct rls_elf *elf)
{
	return elf->static_symbols.count > 1;
}

static bool find_in_table(const struct elf_table *table, const struct elf_strings *strings,
			  bool dynamic, const char *name, struct rls_elf_symbol *out)
{
	size_t bytes = strlen(name) + 1;

	for (size_t i = 1; i < table->count; i++) {
		Elf64_Sym entry;

		elf_table_entry(table, i, &entry);
		if (entry.st_shndx == SHN_UNDEF || entry.st_name >= strings->size_bytes ||
		    strings->size_bytes - entry.st_name < bytes ||
		    memcmp(strings->data + entry.st_name, name, bytes))
			continue;
		*out = elf_symbols_describe(&entry, strings, dynamic);
		return true;
	}
	return false;
}

int rls_elf_find_static_symbol(const struct rls_elf *elf, const char *name,
			       struct rls_elf_symbol *out)
{
	bool found = find_in_table(&elf->static_symbols, &elf->static_strings, false, name, out);

	return found ? 0 : -ENOENT;
}

int rls_elf_find_symbol(const struct rls_elf *elf, const char *name, struct rls_elf_symbol *out)
{
	if (find_in_table(&elf->dynamic_symbols, &elf->dynamic_strings, true, name, out))
		return 0;
	return rls_elf_find_static_symbol(elf, name, out);
}

static bool is_name(const char *name, const char *wanted)
{
	return !strcmp(name, wanted);
}

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static bool imports_in_table(const struct elf_table *table, const struct elf_strings *strings,
			     const char *const *wanted, size_t count,
			     bool (*matches)(const char *name, const char *wanted))
{
	for (size_t i = 1; i < table->count; i++) {
		Elf64_Sym entry;
		const char *name;

		elf_table_entry(table, i, &entry);
		if (entry.st_shndx != SHN_UNDEF)
			continue;
		name = elf_string(strings, entry.st_name);
		for (size_t j = 0; j < count; j++)
			if (matches(name, wanted[j]))
				return true;
	}
	return false;
}

static bool imports(const struct rls_elf *elf, const char *const *wanted, size_t count,
		    bool (*matches)(const char *name, const char *wanted))
{
	return imports_in_table(&elf->dynamic_symbols, &elf->dynamic_strings, wanted, count,
				matches) ||
	       imports_in_table(&elf->static_symbols, &elf->static_strings, wanted, count, matches);
}

bool rls_elf_imports_any(const struct rls_elf *elf, const char *const *names, size_t count)
{
	return imports(elf, names, count, is_name);
}

bool rls_elf_imports_prefix(const struct rls_elf *elf, const char *const *prefixes, size_t count)
{
	return imports(elf, prefixes, count, begins_with);
}

static struct rls_elf_relocation describe_rela(const struct rls_elf *elf, const Elf64_Rela *rela,
					       bool plt)
{
	uint32_t index = ELF64_R_SYM(rela->r_info);
	struct rls_elf_relocation relocation = {
		.vaddr = rela->r_offset,
		.type = ELF64_R_TYPE(rela->r_info),
		.addend = rela->r_addend,
		.plt = plt,
	};

	if (index && index < elf->dynamic_symbols.count) {
		Elf64_Sym entry;
		struct rls_elf_symbol symbol;

		elf_table_entry(&elf->dynamic_symbols, index, &entry);
		symbol = elf_symbols_describe(&entry, &elf->dynamic_strings, true);
		relocation.symbol = symbol.name;
		relocation.symbol_vaddr = symbol.vaddr;
	}
	return relocation;
}

typedef int relocation_visit(const struct rls_elf_relocation *relocation, void *context);

static int each_rela(const struct rls_elf *elf, uint64_t vaddr, uint64_t bytes, bool plt,
		     relocation_visit *visit, void *context)
{
	struct elf_table table = elf_table_at(elf, vaddr, bytes, sizeof(Elf64_Rela));

	if (!vaddr)
		return 0;
	for (size_t i = 0; i < table.count; i++) {
		Elf64_Rela rela;
		struct rls_elf_relocation relocation;
		int error;

		elf_table_entry(&table, i, &rela);
		relocation = describe_rela(elf, &rela, plt);
		error = visit(&relocation, context);
		if (error)
			return error;
	}
	return 0;
}

/* A word of DT_RELR relocated in place: the addend is what the file holds there. */
static int visit_relr_word(const struct rls_elf *elf, uint64_t vaddr, relocation_visit *visit,
			   void *context)
{
	const uint8_t *bytes = rls_elf_bytes(elf, vaddr, 8);
	struct rls_elf_relocation relocation = {.vaddr = vaddr, .type = R_X86_64_RELATIVE};

	if (!bytes)
		return 0;
	memcpy(&relocation.addend, bytes, sizeof(relocation.addend));
	return visit(&relocation, context);
}

/* DT_RELR: an even entry is an address; an odd one is a bitmap of the 63 words that follow
 * what came before. (Generic ABI, "Relative relocation table".) */
static int each_relr(const struct rls_elf *elf, relocation_visit *visit, void *context)
{
	struct elf_table table =
		elf_table_at(elf, elf->dynamic.relr, elf->dynamic.relr_bytes, sizeof(Elf64_Relr));
	uint64_t next = 0;

	if (!elf->dynamic.relr)
		return 0;
	for (size_t i = 0; i < table.count; i++) {
		uint64_t entry;
		int error = 0;

		elf_table_entry(&table, i, &entry);
		if (!(entry & 1)) {
			error = visit_relr_word(elf, entry, visit, context);
			next = entry + 8;
		} else {
			for (uint64_t bits = entry >> 1, at = next; bits && !error;
			     bits >>= 1, at += 8)
				if (bits & 1)
					error = visit_relr_word(elf, at, visit, context);
			next += 63 * 8;
		}
		if (error)
			return error;
	}
	return 0;
}

int rls_elf_each_relocation(const struct rls_elf *elf,
			    int (*visit)(const struct rls_elf_relocation *relocation,
					 void *context),
			    void *context)
{
	const struct elf_dynamic *dynamic = &elf->dynamic;
	int error;

	error = each_rela(elf, dynamic->rela, dynamic->rela_bytes, false, visit, context);
	if (error)
		return error;
	error = each_rela(elf, dynamic->jmprel, dynamic->jmprel_bytes, true, visit, context);
	if (error)
		return error;
	return each_relr(elf, visit, context);
}
