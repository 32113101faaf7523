# SPDX-License-Identifier: GPL-2.0-only
"""Settings of Open MPI for any number of ranks on any machine, also as root and beside other programs. Variables that are already set
keep their values."""

import os

SETTINGS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_btl_base_warn_component_unused": "0",
    "OMPI_MCA_pml": "ob1",  # no search for network cards
    "HWLOC_PLUGINS_PATH": os.devnull,  # nor for graphics cards, for which each process loads X11 and OpenCL
}


def environment(folder, **more):
    """Variables for a process that keeps Open MPI's files in `folder`."""
    return {**SETTINGS, **more, "OMPI_MCA_orte_tmpdir_base": str(folder), **os.environ}
