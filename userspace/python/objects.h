/* Objects: attributes, dictionaries and types of a running interpreter, read from outside.
 *
 *     object ─▶ type ─▶ bases, name
 *        └────▶ its attributes: a dictionary, or values beside the keys that all of its type share
 *
 * x86-64 builds with the GIL, CPython 3.8 to 3.14; offsets from the headers of each version. All that is read is
 * hostile: counts are bounded, what is no dictionary by its type's flags is none, and an object may change
 * while it is read. Whoever reads asks rls_object_is_alive() where that matters.
 */
#ifndef RLS_OBJECTS_H
#define RLS_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/process/space.h"
#include "userspace/python/python_frames.h"

#define RLS_DICT_ENTRIES_MAX (1U << 20) /* what claims to have more is none */
#define RLS_BASES_MAX 64
#define RLS_OBJECT_NAME_BYTES 256
#define RLS_LAYER_BASE "Module" /* of classes whose objects are layers of a model */

/* How to read one interpreter's. */
struct rls_object_reader {
	const struct rls_space *space; /* borrowed */
	const struct rls_frame_layout *layout; /* of the same interpreter */
};

/* Whether the objects of such an interpreter can be read. */
bool rls_objects_known(const struct rls_frame_layout *layout);

/* A dictionary, or an object's attributes. Its entries are numbered; some may be empty. */
struct rls_dict {
	uint64_t entries; /* address */
	uint64_t values; /* where they are elsewhere; 0: in the entries */
	uint32_t count, entry_bytes, key_at, value_at;
};

/* The dict object at an address. False: it is none, or cannot be read. */
bool rls_dict_open(const struct rls_object_reader *reader, uint64_t object, struct rls_dict *out);
/* An object's attributes. False: it has none, or they cannot be read. */
bool rls_object_attributes(const struct rls_object_reader *reader, uint64_t object,
			   struct rls_dict *out);
/* Entry `at`: addresses of its key and value. False: it is empty. */
bool rls_dict_entry(const struct rls_object_reader *reader, const struct rls_dict *dict,
		    uint32_t at, uint64_t *key, uint64_t *value);
/* The value of a key that is this ASCII name; 0: there is none. */
uint64_t rls_dict_find(const struct rls_object_reader *reader, const struct rls_dict *dict,
		       const char *name);

/* Where in a tuple object its items lie. */
uint32_t rls_tuple_items_bytes(const struct rls_frame_layout *layout);
/* The type of an object, that of a class that Python code has made; 0: another, or it cannot be read. */
uint64_t rls_object_class(const struct rls_object_reader *reader, uint64_t object);
/* __name__ of a class; its address is not checked. *out is the caller's. 0, -EFAULT, -EINVAL or -ENOMEM. */
int rls_class_name(const struct rls_object_reader *reader, uint64_t type, char **out);
/* Whether it is a class of this name, or has one among its bases. */
bool rls_class_has_base(const struct rls_object_reader *reader, uint64_t type, const char *name);
/* What a class is called by (tp_call); 0: it cannot be read. */
uint64_t rls_class_call(const struct rls_object_reader *reader, uint64_t type);

/* The dictionary of an imported module of the main interpreter (sys.modules). False: it is not there (yet). */
bool rls_module_open(const struct rls_object_reader *reader, uint64_t runtime, const char *name,
		     struct rls_dict *out);

#endif
