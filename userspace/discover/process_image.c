#include "userspace/discover/process_image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "userspace/discover/library.h"
#include "userspace/process/seen_files.h"

void rls_process_image_free(struct rls_process_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->library_count; i++)
		rls_library_free(image->libraries[i]);
	for (size_t i = 0; i < image->warning_count; i++)
		free(image->warnings[i]);
	free(image->libraries);
	free(image->python_path);
	free(image->warnings);
	rls_seen_files_free(image->seen);
	free(image);
}

size_t rls_process_image_known_libraries(const struct rls_process_image *image)
{
	size_t count = 0;

	for (size_t i = 0; i < image->library_count; i++)
		count += image->libraries[i]->role != RLS_ROLE_PYTHON;
	return count;
}

void rls_image_warn(struct rls_process_image *image, const char *format, ...)
{
	char **larger = reallocarray(image->warnings, image->warning_count + 1, sizeof(*larger));
	va_list arguments;

	if (!larger)
		return;
	image->warnings = larger;
	va_start(arguments, format);
	if (vasprintf(&image->warnings[image->warning_count], format, arguments) >= 0)
		image->warning_count++;
	va_end(arguments);
}
