# What a host's operators get beside the program: the monitor's systemd unit and its configuration,
# which is not replaced where there is one, Prometheus' alert rules, a dashboard for Grafana, and how
# Kubernetes runs the image.
# The prefix may be chosen as late as at installing, and the unit has it inside.
set(unit_folder lib/systemd/system)
install(CODE "
  set(RLS_BINDIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  set(RLS_SYSCONFDIR \"\${CMAKE_INSTALL_PREFIX}/etc\")
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(RLS_SYSCONFDIR /etc)
  endif()
  configure_file(\"${PROJECT_SOURCE_DIR}/scripts/systemd/rlscope-bpf-monitor.service.in\"
    \"${PROJECT_BINARY_DIR}/rlscope-bpf-monitor.service\" @ONLY)
  file(INSTALL \"${PROJECT_BINARY_DIR}/rlscope-bpf-monitor.service\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${unit_folder}\")
  if(NOT EXISTS \"\$ENV{DESTDIR}\${RLS_SYSCONFDIR}/rlscope-bpf/monitor.conf\")
    file(INSTALL \"${PROJECT_SOURCE_DIR}/scripts/systemd/monitor.conf\"
      DESTINATION \"\${RLS_SYSCONFDIR}/rlscope-bpf\")
  endif()")
install(FILES scripts/prometheus/rlscope-alerts.yml scripts/prometheus/rlscope-scrape.yml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rlscope-bpf/prometheus)
install(FILES scripts/grafana/rlscope-dashboard.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rlscope-bpf/grafana)
install(FILES scripts/kubernetes/monitor.yaml scripts/kubernetes/attach.yaml
  DESTINATION ${CMAKE_INSTALL_DATADIR}/rlscope-bpf/kubernetes)
