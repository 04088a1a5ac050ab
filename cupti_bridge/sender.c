#include "cupti_bridge/sender.h"

#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cupti_bridge/site.h"

#define PAGE_BYTES 4096

/* Reads our own memory as another process would: what is not there is an error, not the end
 * of the program. A name of a module that was unloaded may be gone. Returns its length, cut
 * to its room; -1: not readable. */
static ssize_t read_name(const char *name, char *to)
{
	size_t length = 0, room = RLS_CUPTI_NAME_BYTES_MAX - 1;

	while (length < room) {
		const char *from = name + length;
		size_t bytes = PAGE_BYTES - (uintptr_t)from % PAGE_BYTES;
		struct iovec local = {to + length, bytes < room - length ? bytes : room - length};
		struct iovec remote = {(void *)(uintptr_t)from, local.iov_len};
		const char *end;

		if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)local.iov_len)
			return -1;
		end = memchr(local.iov_base, '\0', local.iov_len);
		if (end)
			return end - to;
		length += local.iov_len;
	}
	return length;
}

static void clear(struct rls_sender *sender)
{
	sender->header.count = 0;
	sender->header.string_bytes = 0;
	memset(sender->names, 0, sizeof(sender->names));
}

/* Puts a string at the end. 0: no room. */
static uint32_t put_string(struct rls_sender *sender, const char *text, size_t length)
{
	uint32_t offset = sender->header.string_bytes;

	if (length + 1 > sizeof(sender->strings) - offset)
		return 0;
	memcpy(sender->strings + offset, text, length);
	sender->strings[offset + length] = '\0';
	sender->header.string_bytes += length + 1;
	return offset + 1;
}

static size_t name_slot(const struct rls_sender *sender, const char *name)
{
	size_t slot = ((uintptr_t)name >> 3) * 0x9e3779b97f4a7c15ull >> 56;

	while (sender->names[slot].source && sender->names[slot].source != name)
		slot = (slot + 1) % RLS_SENDER_NAME_SLOTS;
	return slot;
}

/* Offset + 1 of a name in this batch, 0 for one that cannot be read. A batch without room for
 * it is sent first. */
static uint32_t sender_intern(struct rls_sender *sender, const char *name)
{
	char text[RLS_CUPTI_NAME_BYTES_MAX];
	size_t slot = name_slot(sender, name);
	ssize_t length;
	uint32_t offset;

	if (sender->names[slot].source)
		return sender->names[slot].offset;
	length = read_name(name, text);
	offset = length < 0 ? 0 : put_string(sender, text, length);
	if (length >= 0 && !offset) {
		rls_sender_send(sender);
		slot = name_slot(sender, name);
		offset = put_string(sender, text, length);
	}
	sender->names[slot].source = name;
	sender->names[slot].offset = offset;
	return offset;
}

static void sender_append(struct rls_sender *sender, const struct rls_cupti_record *record,
			  uint32_t name)
{
	struct rls_cupti_record *slot = &sender->records[sender->header.count++];

	*slot = *record;
	slot->name = name;
	if (sender->header.count == RLS_CUPTI_RECORDS_MAX)
		rls_sender_send(sender);
}

void rls_sender_add(struct rls_sender *sender, const struct rls_cupti_record *record,
		    const char *name)
{
	sender_append(sender, record, name ? sender_intern(sender, name) : 0);
}

void rls_sender_add_status(struct rls_sender *sender, enum rls_cupti_status status, uint64_t value,
			   uint64_t time_ns, const char *sentence)
{
	const struct rls_cupti_record record = {
		.kind = RLS_CUPTI_STATUS,
		.subkind = status,
		.start_ns = time_ns,
		.end_ns = time_ns,
		.value = value,
	};
	size_t length = strnlen(sentence, RLS_CUPTI_NAME_BYTES_MAX - 1);
	uint32_t offset = put_string(sender, sentence, length);

	if (!offset) {
		rls_sender_send(sender);
		offset = put_string(sender, sentence, length);
	}
	sender_append(sender, &record, offset);
}

void rls_sender_send(struct rls_sender *sender)
{
	struct rls_cupti_batch *header = &sender->header;
	size_t record_bytes = header->count * sizeof(struct rls_cupti_record);

	header->magic = RLS_CUPTI_MAGIC;
	header->version = RLS_CUPTI_VERSION;
	header->record_bytes = sizeof(struct rls_cupti_record);
	header->sequence++;
	memcpy(sender->batch, header, sizeof(*header));
	memcpy(sender->batch + sizeof(*header), sender->records, record_bytes);
	memcpy(sender->batch + sizeof(*header) + record_bytes, sender->strings,
	       header->string_bytes);
	rls_site_send(sender->batch, sizeof(*header) + record_bytes + header->string_bytes);
	clear(sender);
}
