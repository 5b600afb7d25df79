/** Every release, oldest first, with the commit whose code it is. */
export const releases = [{ version: '0.2.0', commit: '25e67a42' }];
