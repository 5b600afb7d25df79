/** The command that runs Parley's command line where the server runs, as a person types it. */
export const parleyCommand = document.querySelector('meta[name="parley-command"]').content;
