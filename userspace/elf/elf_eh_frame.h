/* Records of .eh_frame, and the sorted table in .eh_frame_hdr that leads to them.
 *
 * Formats: LSB Core "Exception Frames"; DWARF pointer encodings DW_EH_PE_*. The file is hostile:
 * every read is bounded, none is of any length.
 */
#ifndef RLS_ELF_EH_FRAME_H
#define RLS_ELF_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/elf/elf_image.h"

/* A bounded reader: every read fails once the bytes have run out, and gives 0 or NULL then. */
struct reader {
	const uint8_t *at;
	size_t left;
	bool failed;
};

const uint8_t *reader_take(struct reader *reader, size_t count);
uint64_t reader_number(struct reader *reader, size_t count);
uint64_t reader_uleb128(struct reader *reader);
int64_t reader_sleb128(struct reader *reader);

/* What the FDEs of a CIE have in common. */
struct eh_cie {
	uint64_t vaddr;
	uint8_t encoding; /* of their addresses */
	bool signal; /* frames of signal handlers */
	bool augmented; /* the FDEs have something before their programs */
	uint64_t code_alignment;
	int64_t data_alignment;
	struct reader program; /* what holds at the entry of each function */
};

/* A function's. */
struct eh_fde {
	uint64_t size_bytes; /* of its code */
	struct reader program;
};

/* The FDE at vaddr. *cie is kept when it is the FDE's own (vaddr 0: none is known yet), as almost
 * all FDEs of a library share a few CIEs, in runs. False when they cannot be read. */
bool eh_read_fde(const struct rls_elf *elf, uint64_t vaddr, struct eh_cie *cie, struct eh_fde *out);

/* The table: pairs of signed distances from the header, of a function and of its FDE, ascending in
 * real files. Empty where there is none. */
struct elf_table eh_search_table(const struct rls_elf *elf);
/* Where its i-th function begins, and its FDE. */
void eh_search_entry(const struct rls_elf *elf, const struct elf_table *table, size_t i,
		     uint64_t *function, uint64_t *fde);

#endif
