"""What a plugin's own tests take from SGLang's test package, so that one test file runs on the stand-in and on the engine."""
