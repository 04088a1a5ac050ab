#include "userspace/monitor/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rls_name_entry {
	struct rls_name_entry *next;
	uint32_t number, pid;
	bool used;
	char text[];
};

void rls_names_clear(struct rls_names *names)
{
	while (names->all) {
		struct rls_name_entry *entry = names->all;

		names->all = entry->next;
		free(entry);
	}
	rls_index_map_free(&names->map);
	*names = (struct rls_names){0};
}

int rls_names_add(struct rls_names *names, const struct rls_wire_name *name)
{
	size_t length = name->length < sizeof(name->text) ? name->length : sizeof(name->text);
	struct rls_name_entry *entry;

	if (!name->id || names->map.count >= RLS_NAMES_MAX ||
	    rls_index_map_get(&names->map, name->id, 0))
		return 0;
	entry = malloc(sizeof(*entry) + length + 1);
	if (!entry || rls_index_map_put(&names->map, name->id, 0, entry)) {
		free(entry);
		return -ENOMEM;
	}
	*entry = (struct rls_name_entry){
		.next = names->all, .number = name->id, .pid = name->header.pid, .used = true};
	memcpy(entry->text, name->text, length);
	entry->text[length] = '\0';
	names->all = entry;
	return 0;
}

const char *rls_names_text(struct rls_names *names, uint32_t number)
{
	struct rls_name_entry *entry;

	if (!number)
		return "";
	if (number == RLS_TOTALS_UNREADABLE)
		return "(unreadable)";
	if (number == RLS_TOTALS_OTHER)
		return RLS_NAMES_OTHER;
	entry = rls_index_map_get(&names->map, number, 0);
	if (!entry)
		return NULL;
	entry->used = true;
	return entry->text;
}

void rls_names_age(struct rls_names *names, bool (*is_over)(void *context, uint32_t pid),
		   void *context)
{
	struct rls_name_entry **link = &names->all;

	while (*link) {
		struct rls_name_entry *entry = *link;

		if (entry->used || !is_over(context, entry->pid)) {
			entry->used = false;
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		rls_index_map_remove(&names->map, entry->number, 0);
		free(entry);
	}
}
