package org.wallaroo.spark.query;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class CatalogueTest {
    private static final String REMEDY = "\n  fix: install Java 17 and put `java` on PATH, or set JAVA_HOME; "
            + "`wallaroo test` and `wallaroo run APP --engine memory` need no Java";

    @Test
    void textsAreThoseOfTheCatalogue() {
        assertEquals("R602 Java was not found; none on $PATH" + REMEDY,
                Catalogue.text("R602", "problem", "was not found", "reason", "none on $PATH"));
        assertEquals("W409 main of a.go is not empty, and the file exports ApplicationSetup\n"
                + "  fix: leave `func main() {}` empty, or call worker.Main(setup) and drop the export", Catalogue.text("W409", "file", "a.go"));
    }

    @Test
    void aValueThatIsMissingStaysToBeSeen() {
        assertEquals("R602 Java {problem}; {reason}" + REMEDY, Catalogue.text("R602"));
        assertEquals("X999 {a=b}", Catalogue.text("X999", "a", "b"));
    }
}
