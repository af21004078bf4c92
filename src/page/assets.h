/*
 * assets.h: the files of the web page, compressed by gzip and embedded by cmake/ui.cmake. In a build without npm there
 * are none, and the page is not available.
 */
#ifndef PAGE_ASSETS_H
#define PAGE_ASSETS_H

#include <stddef.h>

struct page_asset {
	const char *path; /* path in URLs: "/app.js" */
	const char *type; /* content type */
	const unsigned char *bytes;
	size_t len;
	const char *sha256; /* of the uncompressed file, 64 hexadecimal digits */
};

extern const struct page_asset page_assets[];
extern const size_t page_asset_count;

#endif
