/* Operation oddities: what a recording notices of its targets' annotations. */
#ifndef RLS_OPERATION_ODDITIES_H
#define RLS_OPERATION_ODDITIES_H

#include <stdbool.h>
#include <stdint.h>

struct rls_operation_oddities {
	bool names_left_out; /* an annotation library had no room for more names */
	uint64_t disorders; /* operations were ended that were not the innermost, or not open */
	bool too_deep; /* more than RLS_OPERATION_DEPTH_MAX operations were active on a thread */
};

#endif
