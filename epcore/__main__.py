from epcore.cli import main

raise SystemExit(main())
