/* The SQLite form: a database with a table for each of the report's, its columns typed.
 *
 * Every table has a column more, `trace`, which says of which trace a row is: several traces are one
 * file, each with the rows that a report of it alone has. What is null in JSON, or left out there, is
 * NULL. Strings of an array (cmdline) are a JSON array.
 *
 * SQLite writes to files, not streams, so the database is made in a temporary file without a name,
 * in one transaction, and then copied: what is in the output is whole, or nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/utf8.h"
#include "analysis/report/tables.h"
#include "analysis/writers/table/json_string.h"
#include "analysis/writers/writer.h"

#define MAGIC "SQLite format 3"
#define HEADER_BYTES 100
#define APPLICATION_AT 68
/* "RLSc", in the file's header: what says that it is ours. */
#define APPLICATION_ID 0x524c5363

struct database {
	sqlite3 *sqlite;
	int fd; /* the file's, whatever its name */
};

/* What the system said of the file, where SQLite only says that reading or writing failed. */
static int error_of(sqlite3 *sqlite, int result)
{
	int system = 0;

	switch (result & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_TOOBIG:
		return -EFBIG;
	case SQLITE_IOERR:
		if (sqlite)
			sqlite3_file_control(sqlite, "main", SQLITE_FCNTL_LAST_ERRNO, &system);
		return system > 0 ? -system : -EIO;
	default:
		return -EIO;
	}
}

/* --- the file ----------------------------------------------------------------------- */

/* Its name is gone as soon as it is open, so nothing stays behind, whatever ends the program. */
static int open_database(struct database *database)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	int err;

	if (snprintf(path, sizeof(path), "%s/rlscope-sqlite-XXXXXX",
		     folder && *folder ? folder : "/var/tmp") >= (int)sizeof(path))
		return -ENAMETOOLONG;
	database->fd = mkostemp(path, O_CLOEXEC);
	if (database->fd < 0)
		return -errno;
	err = error_of(NULL, sqlite3_open_v2(path, &database->sqlite, SQLITE_OPEN_READWRITE, NULL));
	/* Nobody else has it, and nobody needs half of it. */
	if (!err)
		err = error_of(
			database->sqlite,
			sqlite3_exec(database->sqlite,
				     "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF;"
				     "PRAGMA synchronous = OFF; BEGIN",
				     NULL, NULL, NULL));
	unlink(path);
	return err;
}

static void free_database(struct database *database)
{
	sqlite3_close(database->sqlite);
	if (database->fd >= 0)
		close(database->fd);
}

static int copy_file(int fd, FILE *out)
{
	char block[65536];
	off_t at = 0;

	for (;;) {
		ssize_t got = pread(fd, block, sizeof(block), at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		if (fwrite(block, 1, (size_t)got, out) != (size_t)got)
			break;
		at += got;
	}
	if (!fflush(out) && !ferror(out))
		return 0;
	return errno ? -errno : -EIO;
}

static int write_file(struct database *database, FILE *out)
{
	int err = error_of(database->sqlite,
			   sqlite3_exec(database->sqlite, "COMMIT", NULL, NULL, NULL));

	if (err)
		return err;
	errno = 0;
	err = copy_file(database->fd, out);
	/* Half a database is of no use. Where it cannot be taken back either, it is known to be half. */
	if (err && ftruncate(fileno(out), 0))
		errno = 0;
	return err;
}

/* --- tables ------------------------------------------------------------------------- */

static bool has_column(const struct rls_column *column)
{
	return !(column->flags & (RLS_HIDDEN | RLS_FORMER));
}

static const char *type_of(const struct rls_column *column)
{
	if (column->type == RLS_COLUMN_DOUBLE)
		return "REAL";
	return rls_column_is_number(column) ? "INTEGER" : "TEXT";
}

/* Names are the descriptors' own: nothing of a target is in a statement. */
static int create_table(const struct database *database, const struct rls_table *table)
{
	_cleanup_free_ char *statement = NULL;
	size_t bytes;
	FILE *out = open_memstream(&statement, &bytes);

	if (!out)
		return -ENOMEM;
	fprintf(out, "CREATE TABLE \"%s\" (trace TEXT NOT NULL", table->name);
	for (size_t i = 0; i < table->column_count; i++) {
		const struct rls_column *column = &table->columns[i];
		bool null = column->flags & (RLS_OPTIONAL | RLS_NULLABLE) ||
			    column->type == RLS_COLUMN_DOUBLE;

		if (has_column(column))
			fprintf(out, ", \"%s\" %s%s", column->name, type_of(column),
				null ? "" : " NOT NULL");
	}
	fputc(')', out);
	if (fclose(out))
		return -ENOMEM;
	return error_of(database->sqlite,
			sqlite3_exec(database->sqlite, statement, NULL, NULL, NULL));
}

static int prepare_insert(const struct database *database, const struct rls_table *table,
			  sqlite3_stmt **out)
{
	_cleanup_free_ char *statement = NULL;
	size_t bytes;
	FILE *text = open_memstream(&statement, &bytes);

	if (!text)
		return -ENOMEM;
	fprintf(text, "INSERT INTO \"%s\" VALUES (?", table->name);
	for (size_t i = 0; i < table->column_count; i++)
		fputs(has_column(&table->columns[i]) ? ", ?" : "", text);
	fputc(')', text);
	if (fclose(text))
		return -ENOMEM;
	return error_of(database->sqlite,
			sqlite3_prepare_v2(database->sqlite, statement, -1, out, NULL));
}

static int bind_strings(sqlite3_stmt *insert, int number, const struct rls_column *column,
			const struct rls_table_place *place)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes, count;
	FILE *out = open_memstream(&text, &bytes);
	const char *const *strings = rls_column_strings(column, place, &count);

	if (!out)
		return SQLITE_NOMEM;
	rls_json_print_strings(out, strings, count);
	if (fclose(out))
		return SQLITE_NOMEM;
	return sqlite3_bind_text64(insert, number, text, bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
}

static int bind_value(sqlite3_stmt *insert, int number, const struct rls_column *column,
		      const struct rls_table_place *place)
{
	struct rls_value value;

	if (column->type == RLS_COLUMN_STRINGS)
		return bind_strings(insert, number, column, place);
	value = rls_column_value(column, place);
	if (column->flags & RLS_OPTIONAL && rls_value_is_empty(&value))
		return sqlite3_bind_null(insert, number);
	switch (value.kind) {
	case RLS_VALUE_INTEGER: /* an event's numbers fit; whatever is more is the largest */
		return sqlite3_bind_int64(insert, number,
					  value.integer > INT64_MAX ? INT64_MAX
								    : (sqlite3_int64)value.integer);
	case RLS_VALUE_SIGNED:
		return sqlite3_bind_int64(insert, number, value.number);
	case RLS_VALUE_REAL:
		return sqlite3_bind_double(insert, number, value.real);
	case RLS_VALUE_TEXT:
		return sqlite3_bind_text(insert, number, value.text, -1, SQLITE_STATIC);
	default:
		return sqlite3_bind_null(insert, number);
	}
}

static int insert_row(sqlite3_stmt *insert, const char *trace, const struct rls_table *table,
		      const struct rls_table_place *place)
{
	int number = 1, result = sqlite3_bind_text(insert, number++, trace, -1, SQLITE_STATIC);

	for (size_t i = 0; result == SQLITE_OK && i < table->column_count; i++) {
		if (has_column(&table->columns[i]))
			result = bind_value(insert, number++, &table->columns[i], place);
	}
	if (result == SQLITE_OK)
		result = sqlite3_step(insert);
	sqlite3_reset(insert);
	return error_of(sqlite3_db_handle(insert), result);
}

static int insert_rows(sqlite3_stmt *insert, enum rls_report_table table,
		       const struct rls_named_report *named)
{
	struct rls_table_place place = {0};
	int err = 0;

	while (!err && rls_table_next(named->report, table, &place))
		err = insert_row(insert, named->trace, &rls_report_tables[table], &place);
	return err;
}

static int write_table(const struct database *database, enum rls_report_table table,
		       const struct rls_named_report *reports, size_t count)
{
	const struct rls_table *of = &rls_report_tables[table];
	sqlite3_stmt *insert = NULL;
	int err = create_table(database, of);

	if (!err)
		err = prepare_insert(database, of, &insert);
	for (size_t i = 0; !err && i < count; i++)
		err = insert_rows(insert, table, &reports[i]);
	sqlite3_finalize(insert);
	return err;
}

/* --- the form ----------------------------------------------------------------------- */

/* A path need not be UTF-8, as SQLite's texts are. */
static char *clean_name(const char *name)
{
	size_t left = strlen(name), bytes;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	if (!out)
		return NULL;
	while (left) {
		struct rls_utf8_piece piece = rls_utf8_piece(name, left);

		fwrite(piece.text, 1, piece.bytes, out);
		name += piece.taken;
		left -= piece.taken;
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static int write_tables(const struct database *database, const struct rls_write_options *options,
			const struct rls_named_report *reports, size_t count)
{
	_cleanup_free_ char *marks = NULL;
	int err;

	if (asprintf(&marks, "PRAGMA application_id = %d; PRAGMA user_version = 1",
		     APPLICATION_ID) < 0) {
		marks = NULL;
		return -ENOMEM;
	}
	err = error_of(database->sqlite, sqlite3_exec(database->sqlite, marks, NULL, NULL, NULL));
	for (int table = 0; !err && table < RLS_TABLE_MAX; table++) {
		if (!options->one_table || options->table == (enum rls_report_table)table)
			err = write_table(database, table, reports, count);
	}
	return err;
}

static int write_reports(const struct rls_named_report *reports, size_t count, FILE *out,
			 const struct rls_write_options *options)
{
	__attribute__((cleanup(free_database))) struct database database = {.fd = -1};
	int err = open_database(&database);

	if (!err)
		err = write_tables(&database, options, reports, count);
	return err ? err : write_file(&database, out);
}

static int write_sqlite(const struct rls_report *report, FILE *out,
			const struct rls_write_options *options)
{
	struct rls_named_report alone = {.trace = "", .report = report};
	const struct rls_named_report *from = options->report_count ? options->reports : &alone;
	size_t count = options->report_count ? options->report_count : 1, i;
	struct rls_named_report *named = calloc(count, sizeof(*named));
	int err = named ? 0 : -ENOMEM;

	for (i = 0; !err && i < count; i++) {
		named[i].report = from[i].report;
		named[i].trace = clean_name(from[i].trace);
		err = named[i].trace ? 0 : -ENOMEM;
	}
	if (!err)
		err = write_reports(named, count, out, options);
	while (named && i--)
		free((char *)(uintptr_t)named[i].trace);
	free(named);
	return err;
}

/* A database of ours, or an empty file. */
static bool is_own(FILE *file)
{
	unsigned char header[HEADER_BYTES];
	size_t got = fread(header, 1, sizeof(header), file);
	const unsigned char *id = header + APPLICATION_AT;

	if (!got)
		return true;
	return got == sizeof(header) && !memcmp(header, MAGIC, sizeof(MAGIC)) &&
	       ((uint32_t)id[0] << 24 | id[1] << 16 | id[2] << 8 | id[3]) == APPLICATION_ID;
}

const struct rls_report_writer rls_sqlite_writer = {
	.name = "sqlite",
	.write = write_sqlite,
	.binary = true,
	.separate = true,
	.is_own = is_own,
};
