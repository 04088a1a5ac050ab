/* The slots of a type that the interpreter calls: name and place of each.
 *
 * tp_dealloc is not in the table, since not only the interpreter calls it, but harvested too:
 * a tensor's last reference frees its storage and its part of the autograd graph, 3 % of the
 * time of a real PPO. tp_traverse, tp_clear, tp_free, tp_alloc, tp_is_gc, tp_del and
 * tp_finalize are left out: the garbage collector calls those at any time, mostly for less time
 * than a probe takes. Their time appears in the blind spot.
 */
#ifndef RLS_TYPE_SLOTS_H
#define RLS_TYPE_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct rls_slot {
	uint16_t offset;
	const char *name;
};

/* Slots of PyTypeObject itself. */
extern const struct rls_slot rls_type_slots[];
extern const size_t rls_type_slot_count;

/* Protocol tables that a PyTypeObject points to. Slot offsets are in the table. */
struct rls_slot_table {
	uint16_t type_offset; /* where the type keeps the pointer */
	const char *const *names; /* word by word; NULL: not a function */
	size_t count;
};
extern const struct rls_slot_table rls_slot_tables[];
extern const size_t rls_slot_table_count;

#define RLS_SLOT_TABLE_MAX 36

#endif
