// The rules of the tree, each with its reason beside it. Run through nx (`npm run lint`): without a project graph the boundary rule
// passes whatever it reads, which is why tools/check-boundaries.mjs proves that it bites.
import eslint from '@eslint/js';
import nx from '@nx/eslint-plugin';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

const TESTS = [
  '**/*.test.ts',
  '**/*.test-d.ts',
  '{apps,libs,examples}/*/test/**/*.ts',
  'test/**/*.ts',
  'bench/**/*.ts',
  'libs/testing/src/**/*.ts',
];
/** Programs that speak to a person on a terminal. */
const TALKERS = ['tools/**', 'examples/**', 'bench/**', 'apps/cli/src/**', 'apps/stack/src/**', ...TESTS];

// Which packages of ours may see which others (by the tag in each package.json), and which npm packages the narrow ones may load.
const constraints = [
  // Contracts and decisions stay loadable anywhere and testable without anything: a schema, a canonical form, a hash, a shell's grammar.
  {
    sourceTag: 'type:pure',
    onlyDependOnLibsWithTags: ['type:pure'],
    allowedExternalImports: ['zod', 'canonicalize', '@noble/hashes', '@noble/hashes/*', 'unbash'],
  },
  // Shells wrap one technology each (NATS, Postgres, MCP, the process); they know no business noun and no app.
  { sourceTag: 'type:shell', onlyDependOnLibsWithTags: ['type:pure', 'type:shell'] },
  // Published: a user of an SDK installs what is listed here, and never Nest.
  {
    sourceTag: 'type:sdk',
    onlyDependOnLibsWithTags: ['type:pure'],
    allowedExternalImports: ['zod', 'yaml', '@nats-io/*', 'node:*', 'picomatch', 're2js', '@agentclientprotocol/sdk'],
  },
  // Services meet on the bus, so no app may see another, nor a client of its own API.
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: ['type:pure', 'type:shell'] },
  // The command line is a user of the HTTP API like any other.
  {
    sourceTag: 'type:cli',
    onlyDependOnLibsWithTags: ['type:pure', 'type:sdk'],
    bannedExternalImports: ['@nestjs/*', '@nats-io/*', '@prisma/*'],
  },
  // What prepares and starts an installation on one machine.
  { sourceTag: 'type:tool', onlyDependOnLibsWithTags: ['type:pure', 'type:shell', 'type:sdk', 'type:tool'] },
  // Tests only; nothing that ships may depend on it.
  { sourceTag: 'type:testing', onlyDependOnLibsWithTags: ['*'] },
  // An example shows what a stranger can do: published packages alone.
  { sourceTag: 'type:example', onlyDependOnLibsWithTags: ['type:pure', 'type:sdk'], bannedExternalImports: ['@nestjs/*', '@prisma/*'] },
  // The root holds tools, whole-system tests and benchmarks.
  { sourceTag: 'type:root', onlyDependOnLibsWithTags: ['*'] },
];
// A test may add the test library and whatever else it observes with; the other walls stand for it too.
const constraintsOfTests = constraints.map(({ sourceTag, onlyDependOnLibsWithTags }) => ({
  sourceTag,
  onlyDependOnLibsWithTags: [...new Set([...onlyDependOnLibsWithTags, 'type:pure', 'type:shell', 'type:sdk', 'type:tool', 'type:testing'])],
}));
// Every test may cite a requirement, the list of which stands once for the whole system, start its service as a process of its own, and face the servers
// of other people that stand for the ones out there.
const CITING = ['^(\\.\\./)+test/verifies\\.js$', '^(\\.\\./)+test/system/(alone|packages|sdk-server|sign-in-world)\\.js$'];
const boundaries = (depConstraints, more = {}) => ['error', { banTransitiveDependencies: true, depConstraints, ...more }];

// Syntax that is refused. ESLint replaces this rule's list in each override, so the parts are put together below.
const noDefaultExport = {
  selector: 'ExportDefaultDeclaration',
  message: 'Export by name: a name is the same in every file that imports it.',
};
const noExportAll = { selector: 'ExportAllDeclaration', message: 'List what is exported: the public surface is read, not guessed.' };
const noSubjects = [
  ':matches(Literal[value=/^ambit\\.(rpc|evt|job|ctl|jrn)\\./], TemplateElement[value.raw=/^ambit\\.(rpc|evt|job|ctl|jrn)\\./])',
].map((selector) => ({
  selector,
  message: 'Subjects are said once, in libs/contracts: use the contract, subject(), pattern() or a constant from there.',
}));
const atMostThreeParameters = {
  // A constructor that receives what is injected may take more, and an override takes what its base says.
  selector:
    ':matches(FunctionDeclaration, ArrowFunctionExpression, TSDeclareFunction, TSMethodSignature)[params.length>3], :not(MethodDefinition[kind="constructor"], MethodDefinition[override=true]) > FunctionExpression[params.length>3]',
  message: 'At most three parameters; more is an options object with named fields.',
};
const noSkippedTests = {
  selector:
    'MemberExpression[object.name=/^(it|test|describe)$/][property.name=/^(only|skip|todo|failing)$/], CallExpression[callee.name=/^(fit|fdescribe|xit|xtest|xdescribe)$/]',
  message: 'Every test runs, and all of them: neither focus nor skip one.',
};
const noClock = { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: 'Time is an argument here.' };
const everywhere = [noDefaultExport, noExportAll, atMostThreeParameters, noSkippedTests];

const noImport = (...patterns) => ['error', { patterns }];
const noRepository = { regex: '\\.repository(\\.js)?$', message: 'Handlers route; ask the service.' };
const noPrisma = { regex: '^@prisma/|/generated/', message: 'Only *.repository.ts sees Prisma.' };

const purity = {
  'no-restricted-globals': [
    'error',
    ...[
      'process',
      'fetch',
      'setTimeout',
      'setInterval',
      'setImmediate',
      'queueMicrotask',
      'performance',
      'crypto',
      'console',
      'require',
    ].map((name) => ({
      name,
      message: 'Pure code decides from its arguments alone: no process, network, timer, clock or randomness.',
    })),
  ],
  'no-restricted-properties': [
    'error',
    { object: 'Date', property: 'now', message: 'Time is an argument here.' },
    { object: 'Math', property: 'random', message: 'Randomness is an argument here.' },
    { object: 'globalThis', message: 'Pure code decides from its arguments alone.' },
  ],
};

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/node_modules/**',
      'libs/db/src/generated/**',
      'docs/generated/**',
      'deploy/**',
      '.nx/**',
      '.ambit/**',
      'coverage/**',
    ],
  },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommended],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { '@nx': nx, 'import-x': importX },
    settings: {
      'import-x/resolver-next': [
        createNodeResolver({
          extensions: ['.ts', '.js'],
          extensionAlias: { '.js': ['.ts', '.js'] },
          conditionNames: ['ambit-source', 'node', 'import', 'default'],
        }),
      ],
      'import-x/extensions': ['.ts'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts'] },
    },
    rules: {
      '@nx/enforce-module-boundaries': boundaries(constraints),
      // A cycle inside a package means two files that are one idea.
      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      // A promise nobody waits for loses its error, and outlives the shutdown.
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false, attributes: false } }],
      '@typescript-eslint/await-thenable': 'error',
      // What was caught may be thrown again as it came.
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true }],
      // A new member of a union must be met everywhere it is told apart.
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-unnecessary-type-assertion': 'error',
      '@typescript-eslint/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      // A Nest module is a class with nothing inside; `{}` is the honest type of "no declared faults".
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/no-empty-object-type': ['error', { allowObjectTypes: 'always', allowInterfaces: 'with-single-extends' }],
      'no-else-return': ['error', { allowElseIf: false }],
      eqeqeq: ['error', 'always'],
      'prefer-const': 'error',
      'no-var': 'error',
      'no-console': 'error',
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx', 'hack'], location: 'start' }],
      'no-restricted-syntax': ['error', ...everywhere, ...noSubjects],
      // The compiler knows the names.
      'no-undef': 'off',
    },
  },
  {
    // Where types are made from values, an assertion is the tool; each has its reason beside it.
    files: ['libs/contracts/src/kit/**/*.ts', 'libs/bus/src/**/*.ts', 'libs/worker/src/{caller,answer}.ts', 'libs/client/src/answer.ts'],
    rules: { '@typescript-eslint/consistent-type-assertions': 'off' },
  },
  { files: ['libs/contracts/src/**/*.ts'], rules: { 'no-restricted-syntax': ['error', ...everywhere] } },
  {
    files: ['libs/{contracts,capability}/src/**/*.ts'],
    ignores: TESTS,
    rules: {
      ...purity,
      'no-restricted-imports': noImport({ regex: '^node:', message: 'Pure code runs anywhere: no Node module.' }),
      'no-restricted-syntax': ['error', ...everywhere, noClock],
    },
  },
  {
    files: ['libs/capability/src/**/*.ts'],
    ignores: TESTS,
    rules: { 'no-restricted-syntax': ['error', ...everywhere, ...noSubjects, noClock] },
  },
  { files: ['apps/*/src/**/*.ts'], ignores: ['**/*.repository.ts', ...TESTS], rules: { 'no-restricted-imports': noImport(noPrisma) } },
  { files: ['apps/*/src/**/*.{handlers,routes}.ts'], rules: { 'no-restricted-imports': noImport(noPrisma, noRepository) } },
  {
    files: ['apps/*/src/domain/**/*.ts'],
    ignores: TESTS,
    rules: {
      ...purity,
      // An allow-list: contracts, capability, schemas and files beside it. Everything else is I/O, or would be one day.
      'no-restricted-imports': noImport(
        {
          regex: '^(?!\\.{1,2}/|zod$|@ambit/(contracts|capability)$)',
          message: 'A domain file imports contracts, capability, zod and its neighbours, nothing else.',
        },
        {
          regex: '^\\..*\\.(repository|service|handlers|routes|module|config)(\\.js)?$',
          message: 'Imports point inwards: the shell calls the domain.',
        },
        { regex: '^\\.\\./(?!domain/)', message: 'A domain file imports its neighbours in domain/, not the shell around it.' },
      ),
      'no-restricted-syntax': ['error', ...everywhere, ...noSubjects, noClock],
    },
  },
  {
    files: TESTS,
    rules: {
      // A package's own tests may take it by its public name.
      '@nx/enforce-module-boundaries': boundaries(constraintsOfTests, {
        allowCircularSelfDependency: true,
        allow: CITING,
        // What libs/testing stands on is itself tested with it. Only tests do this, and no package.json says so, hence no build waits in a ring.
        ignoredCircularDependencies: ['bus', 'db', 'service', 'embedded', 'identity'].map((name) => [`@ambit/${name}`, '@ambit/testing']),
      }),
      '@typescript-eslint/consistent-type-assertions': 'off',
      // Numbers beyond precision are among the inputs that tests try.
      'no-loss-of-precision': 'off',
      // A test says a subject by hand where the wire itself is what it proves.
      'no-restricted-syntax': ['error', ...everywhere],
    },
  },
  // The worker without our libraries: the contract, in the open.
  { files: ['examples/worker-plain-nats/**/*.ts'], rules: { 'no-restricted-syntax': ['error', ...everywhere] } },
  { files: ['examples/**/*.ts'], rules: { '@typescript-eslint/consistent-type-assertions': 'off' } },
  // A tool's own configuration file says how the tool wants it.
  { files: ['*.config.ts'], rules: { 'no-restricted-syntax': 'off' } },
  { files: TALKERS, rules: { 'no-console': 'off' } },
  {
    files: ['**/*.mjs', '**/*.js'],
    languageOptions: {
      sourceType: 'module',
      globals: Object.fromEntries(
        [
          'process',
          'console',
          'URL',
          'Buffer',
          'fetch',
          'setTimeout',
          'clearTimeout',
          'setInterval',
          'clearInterval',
          'TextEncoder',
          'TextDecoder',
          'AbortController',
          'AbortSignal',
          'performance',
          'structuredClone',
          'setImmediate',
        ].map((name) => [name, 'readonly']),
      ),
    },
    rules: {
      'no-warning-comments': ['error', { terms: ['todo', 'fixme', 'xxx', 'hack'], location: 'start' }],
      eqeqeq: ['error', 'always'],
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    },
  },
);
