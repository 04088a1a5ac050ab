# What people read: manual pages beside their commands, and the papers at the root.
file(GLOB manual_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/userspace/commands/*.1)
install(FILES ${manual_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md LICENSE CHANGES DESTINATION ${CMAKE_INSTALL_DOCDIR})
