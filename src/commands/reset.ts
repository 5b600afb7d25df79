import { newSession } from './new.ts';

export const reset = newSession('reset');
