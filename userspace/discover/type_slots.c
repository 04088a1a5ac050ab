#include "userspace/discover/type_slots.h"

#include "userspace/python/cpython_layout.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

const struct rls_slot rls_type_slots[] = {
	{TYPE_GETATTR, "tp_getattr"},
	{TYPE_SETATTR, "tp_setattr"},
	{TYPE_REPR, "tp_repr"},
	{TYPE_HASH, "tp_hash"},
	{TYPE_CALL, "tp_call"},
	{TYPE_STR, "tp_str"},
	{TYPE_GETATTRO, "tp_getattro"},
	{TYPE_SETATTRO, "tp_setattro"},
	{TYPE_RICHCOMPARE, "tp_richcompare"},
	{TYPE_ITER, "tp_iter"},
	{TYPE_ITERNEXT, "tp_iternext"},
	{TYPE_DESCR_GET, "tp_descr_get"},
	{TYPE_DESCR_SET, "tp_descr_set"},
	{TYPE_INIT, "tp_init"},
	{TYPE_NEW, "tp_new"},
	{TYPE_VECTORCALL, "tp_vectorcall"},
};
const size_t rls_type_slot_count = COUNT_OF(rls_type_slots);

static const char *const number_slots[] = {
	"nb_add",
	"nb_subtract",
	"nb_multiply",
	"nb_remainder",
	"nb_divmod",
	"nb_power",
	"nb_negative",
	"nb_positive",
	"nb_absolute",
	"nb_bool",
	"nb_invert",
	"nb_lshift",
	"nb_rshift",
	"nb_and",
	"nb_xor",
	"nb_or",
	"nb_int",
	NULL, /* nb_reserved */
	"nb_float",
	"nb_inplace_add",
	"nb_inplace_subtract",
	"nb_inplace_multiply",
	"nb_inplace_remainder",
	"nb_inplace_power",
	"nb_inplace_lshift",
	"nb_inplace_rshift",
	"nb_inplace_and",
	"nb_inplace_xor",
	"nb_inplace_or",
	"nb_floor_divide",
	"nb_true_divide",
	"nb_inplace_floor_divide",
	"nb_inplace_true_divide",
	"nb_index",
	"nb_matrix_multiply",
	"nb_inplace_matrix_multiply",
};

static const char *const sequence_slots[] = {
	"sq_length",
	"sq_concat",
	"sq_repeat",
	"sq_item",
	NULL, /* was_sq_slice */
	"sq_ass_item",
	NULL, /* was_sq_ass_slice */
	"sq_contains",
	"sq_inplace_concat",
	"sq_inplace_repeat",
};

static const char *const mapping_slots[] = {"mp_length", "mp_subscript", "mp_ass_subscript"};

static const char *const async_slots[] = {"am_await", "am_aiter", "am_anext", "am_send"};

static const char *const buffer_slots[] = {"bf_getbuffer", "bf_releasebuffer"};

const struct rls_slot_table rls_slot_tables[] = {
	{TYPE_AS_NUMBER, number_slots, COUNT_OF(number_slots)},
	{TYPE_AS_SEQUENCE, sequence_slots, COUNT_OF(sequence_slots)},
	{TYPE_AS_MAPPING, mapping_slots, COUNT_OF(mapping_slots)},
	{TYPE_AS_ASYNC, async_slots, COUNT_OF(async_slots)},
	{TYPE_AS_BUFFER, buffer_slots, COUNT_OF(buffer_slots)},
};
const size_t rls_slot_table_count = COUNT_OF(rls_slot_tables);

_Static_assert(COUNT_OF(number_slots) == RLS_SLOT_TABLE_MAX, "the longest table");
