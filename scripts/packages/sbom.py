"""The bill of materials beside a package: SPDX 2.3, as JSON."""
import hashlib
import json
import re
import time

import release as releases


def package(name, version, licence, **more):
    entry = {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]", "-", name), "name": name,
             "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
    entry.update(more)
    return entry


def debian_url(name, version, source=None):
    """Debian's name of a package: where one would look for faults that became known later."""
    locator = "pkg:deb/debian/%s@%s?arch=amd64" % (name, version.replace("+", "%2B").replace(":", "%3A"))
    if source:
        locator += "&upstream=" + source.replace("+", "%2B")
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}]


def of_library(library):
    return package(library.name, library.version, library.licence,
                   externalRefs=debian_url(library.name, library.version, library.source))


def write(path, artefact, release, contained, depended=()):
    """PATH: the bill of ARTEFACT, a file's path; of what it contains and what it depends on."""
    with open(artefact, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    # Libraries of one package are one entry.
    contained = list({entry["SPDXID"]: entry for entry in contained}.values())
    # The parts inside bpf/ may be taken under GPL-2.0-only too, see LICENSE.
    own = package(releases.NAME, release.version, "BSD-2-Clause", primaryPackagePurpose="APPLICATION",
                  checksums=[{"algorithm": "SHA256", "checksumValue": digest}],
                  packageFileName=artefact.rsplit("/", 1)[-1], supplier="Organization: the authors of rlscope-bpf")
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", own)]
    relations += [(own["SPDXID"], "CONTAINS", entry) for entry in contained]
    relations += [(own["SPDXID"], "DEPENDS_ON", entry) for entry in depended]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": artefact.rsplit("/", 1)[-1],
        "documentNamespace": "https://spdx.org/spdxdocs/%s-%s" % (releases.NAME, digest),
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
                         "creators": ["Tool: rlscope-bpf-scripts-package"]},
        "packages": [own] + contained + list(depended),
        "relationships": [{"spdxElementId": one, "relationshipType": kind,
                           "relatedSpdxElement": other["SPDXID"]} for one, kind, other in relations]}
    if any("LicenseRef-public-domain" in entry["licenseDeclared"] for entry in contained):
        document["hasExtractedLicensingInfos"] = [
            {"licenseId": "LicenseRef-public-domain", "name": "public domain",
             "extractedText": "This file has been put into the public domain."}]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, sort_keys=True)
        file.write("\n")


def contained_in(bill):
    """The entries of what a bill's own package contains."""
    inside = {relation["relatedSpdxElement"] for relation in bill["relationships"]
              if relation["relationshipType"] == "CONTAINS"}
    return [entry for entry in bill["packages"] if entry["SPDXID"] in inside]
