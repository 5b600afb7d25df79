/** The command that a person types on the server's machine to run Parley's command line. */
export const parleyCommand = document.querySelector('meta[name="parley-command"]').content;
