/**
 * Properties try lists and texts as long as their `maxLength` says. Without this, fast-check makes none of more than
 * ten elements, and what takes a dozen steps to go wrong is never found.
 */
import fc from 'fast-check';

fc.configureGlobal({ ...fc.readConfigureGlobal(), defaultSizeToMaxWhenMaxSpecified: true });
