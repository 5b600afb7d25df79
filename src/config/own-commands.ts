/** Set by scripts/bundle.mjs in the bundle of a package, which has no npm scripts. */
declare const PARLEY_IS_PACKAGED: true | undefined;

const isPackaged = typeof PARLEY_IS_PACKAGED !== 'undefined';

/** Command by which a person starts this installation, for texts. */
export const startCommand = isPackaged ? 'parley start' : 'npm start';

/** Command by which a person opens the chat of this installation, for texts. */
export const chatCommand = isPackaged ? 'parley chat' : 'npm run chat';

/** Command that runs Parley's command line here, for texts. */
export const parleyCommand = isPackaged ? 'parley' : './bin/parley.mjs';
