/**
 * Makes properties try lists and texts up to their full `maxLength`. By default fast-check generates at most ten
 * elements, so it never finds faults that take a dozen steps.
 */
import fc from 'fast-check';

fc.configureGlobal({ ...fc.readConfigureGlobal(), defaultSizeToMaxWhenMaxSpecified: true });
