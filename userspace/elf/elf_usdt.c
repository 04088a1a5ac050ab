/* USDT sites: SystemTap's notes, version 3, as sys/sdt.h and bpftrace know them. */
#include <errno.h>
#include <string.h>

#include "userspace/elf/elf_image.h"

#define OWNER "stapsdt"
#define NOTE_TYPE 3

/* All are untrusted: lengths are checked against what is left before they are used. */
struct notes {
	const uint8_t *at;
	uint64_t left;
};

static uint64_t padded(uint32_t bytes)
{
	return ((uint64_t)bytes + 3) & ~(uint64_t)3;
}

/* The next note of our owner and type: its description. False at the end. */
static bool next_note(struct notes *notes, const uint8_t **description, uint32_t *bytes)
{
	Elf64_Nhdr header;

	while (notes->left >= sizeof(header)) {
		const uint8_t *name = notes->at + sizeof(header);
		uint64_t whole;
		bool ours;

		memcpy(&header, notes->at, sizeof(header));
		whole = sizeof(header) + padded(header.n_namesz) + padded(header.n_descsz);
		if (whole > notes->left)
			return false;
		ours = header.n_type == NOTE_TYPE && header.n_namesz == sizeof(OWNER) &&
		       !memcmp(name, OWNER, sizeof(OWNER));
		*description = name + padded(header.n_namesz);
		*bytes = header.n_descsz;
		notes->at += whole;
		notes->left -= whole;
		if (ours)
			return true;
	}
	return false;
}

/* Whether the text at `*at` is exactly `word`; moves behind its NUL. */
static bool take_word(const char **at, const char *end, const char *word)
{
	size_t length = strnlen(*at, (size_t)(end - *at));
	bool same = length == strlen(word) && !memcmp(*at, word, length);

	*at += length < (size_t)(end - *at) ? length + 1 : length;
	return same;
}

int rls_elf_find_usdt(const struct rls_elf *elf, const char *provider, const char *probe,
		      struct rls_elf_usdt *out)
{
	const uint8_t *description;
	Elf64_Shdr section, base;
	struct notes notes;
	uint32_t bytes;

	if (elf_find_section(elf, SHT_NOTE, ".note.stapsdt", &section))
		return -ENOENT;
	notes = (struct notes){elf_file_bytes(elf, section.sh_offset, section.sh_size),
			       section.sh_size};
	if (!notes.at)
		return -ENOENT;
	while (next_note(&notes, &description, &bytes)) {
		const char *text = (const char *)description + 24;
		const char *end = (const char *)description + bytes;
		uint64_t address[3]; /* site, base, semaphore */

		if (bytes < sizeof(address))
			continue;
		memcpy(address, description, sizeof(address));
		if (!take_word(&text, end, provider) || !take_word(&text, end, probe))
			continue;
		/* Where the file was moved after it was linked, the base has moved with it. */
		if (!elf_find_section(elf, SHT_PROGBITS, ".stapsdt.base", &base)) {
			address[0] += base.sh_addr - address[1];
			if (address[2])
				address[2] += base.sh_addr - address[1];
		}
		out->site_vaddr = address[0];
		out->semaphore_vaddr = address[2];
		return 0;
	}
	return -ENOENT;
}
